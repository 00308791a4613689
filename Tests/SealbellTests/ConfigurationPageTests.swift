import Foundation
import PushModel
import Testing

@testable import sealbell

@Suite("docs/configuration.md")
struct ConfigurationPageTests {
    private func page() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "docs/configuration.md"), encoding: .utf8)
    }

    @Test("The page's example is a configuration")
    func example() throws {
        let block = try #require(try page().firstMatch(of: #/```yaml\n((?:.|\n)*?)```/#))
        let configuration = try load(String(block.1))
        #expect(configuration.warnings.isEmpty)
        #expect(configuration.apps[0].name.text == "acme-chat")
    }
}
