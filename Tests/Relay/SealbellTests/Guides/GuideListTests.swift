import Foundation
import PushTesting
import Testing

@Suite("Which guides are done step by step")
struct GuideListTests {
    /// Pages with commands that nobody is to type, and why.
    private static let apart = [
        "docs/guides/adding-a-protocol.md":
            "it names what a new protocol has a part in, and its reader writes Swift"
    ]

    /// Pages that a source has done step by step.
    private static func rehearsed(_ source: String) -> [String] {
        source.matches(of: #/GuideRehearsal\.of\(\s*"([^"]+)"/#).map { String($0.1) }
    }

    @Test("Every page of the guides with commands is done by a test, or has a reason why not")
    func all() throws {
        let root = repositoryRoot()
        func files(_ folder: String, _ ending: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
                .filter { $0.hasSuffix(ending) }.map { folder + "/" + $0 }
        }
        let sources = try files("Tests/Relay/SealbellTests/Guides", ".swift")
            .map { try String(contentsOf: root.appending(path: $0), encoding: .utf8) }
        let done = sources.flatMap(Self.rehearsed)
        #expect(Set(done).count == done.count && Set(done).isDisjoint(with: Self.apart.keys))
        let pages = try files("docs/guides", ".md").filter { try !GuidePage($0).items.isEmpty }
        #expect(pages.count > 15)
        for page in pages {
            #expect(done.contains(page) || Self.apart[page] != nil, "no test does what \(page) asks for")
        }
        // A reason for a page that is gone, or has no commands any more, is none.
        #expect(Set(Self.apart.keys).isSubset(of: pages))
    }

    @Test("A test's page is found however the call is broken")
    func found() {
        let call = "try await GuideRehearsal.of"
        let source = "\(call)(\"one\", [])\n\(call)(\n    \"two\",\n    [])\nlet page = \"three\"\n"
        #expect(Self.rehearsed(source) == ["one", "two"])
    }
}
