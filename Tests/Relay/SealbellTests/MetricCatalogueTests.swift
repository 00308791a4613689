import AdminIngress
import Foundation
import PushTesting
import Testing

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
}
