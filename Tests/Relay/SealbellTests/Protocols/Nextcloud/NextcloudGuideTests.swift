import Foundation
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("docs/guides/nextcloud.md")
struct NextcloudGuideTests {
    private func page() throws -> String {
        try String(contentsOf: repositoryRoot().appending(path: "docs/guides/nextcloud.md"), encoding: .utf8)
    }

    @Test("The page's configuration is one, and so it is with the keys that the page adds")
    func configuration() throws {
        let blocks = try page().matches(of: #/```yaml\n((?:.|\n)*?)```/#).map { String($0.1) }
        #expect(blocks.count == 2)
        let configuration = try load(blocks[0])
        #expect(configuration.warnings.isEmpty)
        #expect(configuration.instances.map(\.name.text) == ["nextcloud-main"])
        let extended = try load(blocks[0] + blocks[1] + "    subscription_keys: subscriptions\n")
        let settings = try #require(extended.instances.first?.nextcloud)
        #expect(settings.privateHosts.map(\.host) == ["cloud.acme.internal"])
        #expect(settings.subscriptionKeysFile == "/etc/sealbell/subscriptions")
    }

    @Test("A key that the page's command makes is one")
    func subscription() throws {
        #expect(try page().contains("openssl rand -hex 20 >>"))
        let made = Secret(String(repeating: "0123456789abcdef0123456789abcdef01234567\n", count: 2).utf8)
        #expect(try SubscriptionKeysFile.parse(made).count == 2)
    }

    @Test("Every note that the page explains is one that the relay counts, and every one is explained")
    func notes() throws {
        let page = try page()
        let named = Set(page.matches(of: #/`(nextcloud\.[a-z-]+)`/#).map { String($0.1) })
        let folder = repositoryRoot().appending(
            path: "Packages/SealbellKit/Sources/Protocols/NextcloudPush/Relay")
        var counted: Set<String> = []
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
            counted.formUnion(text.matches(of: #/"(nextcloud\.[a-z-]+)"/#).map { String($0.1) })
        }
        #expect(!counted.isEmpty && named == counted)
    }
}
