import Foundation
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("docs/configuration.md")
struct ConfigurationPageTests {
    private func page() throws -> String {
        try String(contentsOf: repositoryRoot().appending(path: "docs/configuration.md"), encoding: .utf8)
    }

    @Test("The page's example is a configuration")
    func example() throws {
        let block = try #require(try page().firstMatch(of: #/```yaml\n((?:.|\n)*?)```/#))
        let configuration = try load(String(block.1))
        #expect(configuration.warnings.isEmpty)
        #expect(configuration.apps[0].name.text == "acme-chat")
    }

    @Test("Every key has a row below its section's heading, and every row a key")
    func keys() throws {
        let sections: [String: [String]] = [
            "root": ConfigurationKeys.root, "store": ConfigurationKeys.store,
            "listener": ConfigurationKeys.listener, "tls": ConfigurationKeys.tls,
            "log": ConfigurationKeys.log,
            "app": Hosting.standard.serviceWords + ConfigurationKeys.app,
            "fallback": ConfigurationKeys.fallback, "limits": ConfigurationKeys.limits,
            "outbox": ConfigurationKeys.outbox, "alerts": ConfigurationKeys.alerts,
            "webhook": ConfigurationKeys.webhook, "mail": ConfigurationKeys.mail
        ].merging(Hosting.standard.protocols.map { ($0.word, $0.keys) }) { $1 }
            .merging([
                "origin_relay": OriginSection.relayKeys, "origin_queue": OriginSection.queueKeys,
                "origin_limits": OriginSection.limitKeys,
                "origin_nextcloud": OriginSection.nextcloudKeys
            ]) { $1 }
            .merging(Hosting.standard.services.map { ($0.word, $0.keys) }) { $1 }
        var rows: [String: [String]] = [:]
        var section: String?
        // One section may hold tables of other things; those of keys say so in their head.
        var listsKeys = false
        for line in try page().split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("## ") {
                section = line.firstMatch(of: #/^## `(\w+)`/#).map { String($0.1) }
            }
            if line.hasPrefix("| key |") { listsKeys = true }
            if !line.hasPrefix("|") { listsKeys = false }
            guard listsKeys, let section, let row = line.firstMatch(of: #/^\| `(\w+)` \|/#) else { continue }
            rows[section, default: []].append(String(row.1))
        }
        #expect(rows.mapValues { Set($0) } == sections.mapValues { Set($0) })
        #expect(rows.values.allSatisfy { Set($0).count == $0.count })
    }
}
