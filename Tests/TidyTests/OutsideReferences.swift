import Foundation
import Testing

/// What a comment or a page refers to must be there for its reader: pages, decisions, nothing that lies
/// outside this repository. The patterns are put together from halves, so that this file does not trip over
/// itself.
enum OutsideReferences {
    /// Working papers of before that no reader has.
    private static var papers: [String] {
        [
            "DES" + "IGN §", "DES" + "IGN.md", "STY" + "LE.md", "TOOL" + "CHAIN", "fact " + "sheet",
            "push-services" + " §"
        ]
    }

    static func outside(_ path: String, _ text: String) -> [Violation] {
        let papers = papers
        // Most files hold none, and lines are many.
        guard papers.contains(where: { text.contains($0) }) else { return [] }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, line in
            guard papers.contains(where: { line.contains($0) }) else { return nil }
            return Violation(
                rule: "outside reference", path: path, line: index + 1, text: String(line.prefix(100)))
        }
    }

    /// Pages and decisions that a comment names.
    static func named(_ text: String) -> (pages: [String], decisions: [String]) {
        var (pages, decisions): ([String], [String]) = ([], [])
        guard text.contains("docs/") || text.contains("decision ") else { return ([], []) }
        for line in text.split(separator: "\n") {
            if line.contains("docs/") {
                pages += line.matches(of: #/\bdocs\/[\w.\/-]+\.md\b/#).map { String($0.0) }
            }
            if line.contains("decision ") {
                decisions += line.matches(of: #/\bdecision (\d{4})\b/#).map { String($0.1) }
            }
        }
        return (pages, decisions)
    }
}

@Suite("References")
struct OutsideReferenceTests {
    @Test("No page and no comment refers to a document that is not in the repository")
    func outside() throws {
        let texts =
            try Tree.sourceTexts(endings: ["swift", "h", "md"])
            + Tree.texts(below: "Tests", endings: ["swift"])
            + Tree.texts(below: "docs", endings: ["md"])
            + Tree.texts(below: "scripts", endings: ["", "py", "sh"])
            + ["README.md", "SECURITY.md"].map { ($0, try Tree.text($0)) }
        let found = texts.flatMap { OutsideReferences.outside($0.0, $0.1) }
        #expect(found.isEmpty, "\(found.map(\.description).joined(separator: "\n"))")
        let sample =
            "as the fact " + "sheet §2 says\n(docs/push-services.md §2)\n(push-services" + " §2)"
        #expect(OutsideReferences.outside("x", sample).map(\.line) == [1, 3])
    }

    @Test("Pages and decisions that comments name are there")
    func named() throws {
        let texts =
            try Tree.sourceTexts(endings: ["swift"])
            + Tree.texts(below: "Tests", endings: ["swift"])
        let known = try FileManager.default.contentsOfDirectory(
            atPath: Tree.root.appending(path: "docs/decisions").path())
        var count = 0
        for (path, text) in texts {
            let named = OutsideReferences.named(text)
            count += named.pages.count + named.decisions.count
            for page in named.pages where !Tree.exists(page) { Issue.record("\(path): \(page)") }
            for decision in named.decisions where !known.contains(where: { $0.hasPrefix(decision + "-") }) {
                Issue.record("\(path): decision \(decision)")
            }
        }
        #expect(count > 100, "the names were not found")
    }
}
