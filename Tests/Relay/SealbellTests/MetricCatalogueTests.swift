import AdminIngress
import Foundation
import PushTesting
import Testing
import WireFormats

@testable import RelayProgram

/// That every family has its row in `docs/metrics.md` is looked at by `TidyTests`.
@Suite("The catalogue of metrics")
struct MetricCatalogueTests {
    private static let root = repositoryRoot()

    private static func names(in text: String, _ form: Regex<(Substring, Substring)>) -> Set<String> {
        Set(text.matches(of: form).map { String($0.1) })
    }

    @Test("Every family that the sources name has its line of help, of one sentence")
    func sources() throws {
        let folder = Self.root.appending(path: "Sources")
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var named: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let name = file.lastPathComponent
            guard name != "MetricCatalogue.swift", !name.hasSuffix("MetricHelp.swift") else { continue }
            let text = try String(contentsOf: file, encoding: .utf8)
            // Beside families, C functions of ours begin so; they are called, not named.
            named.formUnion(Self.names(in: text, #/"((?:sealbell|process)_[a-z0-9_]+)"/#))
        }
        let all = MetricCatalogue.help.merging(Hosting.standard.metricHelp) { $1 }
        let unsaid = named.subtracting(all.keys)
        #expect(unsaid.isEmpty, "without help: \(unsaid.sorted())")
        #expect(Set(all.keys).subtracting(named).isEmpty, "named nowhere")
        for (name, help) in all {
            #expect(help.hasSuffix(".") || help.hasSuffix("1"), "\(name)")
            #expect(!help.contains("\n") && !help.contains("\\"), "\(name)")
        }
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test("Board and rules name no family that a relay does not have")
    func board() throws {
        let all = Set(MetricCatalogue.help.keys).union(Hosting.standard.metricHelp.keys)
        let parts = ["_bucket", "_sum", "_count"]
        for file in ["grafana-dashboard.json", "sealbell.rules.yaml", "sealbell.rules.test.yaml"] {
            let named = Self.names(
                in: try Self.text("packaging/monitoring/\(file)"), #/\b((?:sealbell|process)_[a-z0-9_]+)/#)
            let families = named.map { name in
                parts.first { name.hasSuffix($0) && !all.contains(name) }
                    .map { String(name.dropLast($0.count)) } ?? name
            }
            #expect(named.count > 8, "\(file)")
            #expect(Set(families).subtracting(all).isEmpty, "\(file)")
        }
        let board = try JSONValue.parse(Array(Self.text("packaging/monitoring/grafana-dashboard.json").utf8))
        #expect(board["panels"]?.array?.isEmpty == false)
    }

    @Test("Each kind of alert is in one rule, and has its cure in the guide; so has each rule")
    func alerts() throws {
        let kinds = Alert.Kind.allCases.map(\.rawValue).sorted()
        let rules = try Self.text("packaging/monitoring/sealbell.rules.yaml")
        let ruled = rules.matches(of: #/alert=~"([a-z_|]+)"/#).flatMap { $0.1.split(separator: "|") }
        #expect(ruled.map(String.init).sorted() == kinds)
        let guide = try Self.text("docs/guides/monitoring.md")
        let rows = Self.names(in: guide, #/\n\| `(\w+)` \|/#)
        #expect(Set(kinds).subtracting(rows).isEmpty)
        let names = Self.names(in: rules, #/- alert: (\w+)/#)
        #expect(names.count > 8 && names.subtracting(rows).isEmpty)
        // Lanes' states have their meaning there too.
        #expect(Set(LaneReport.State.allCases.map(\.rawValue)).subtracting(rows).isEmpty)
    }
}
