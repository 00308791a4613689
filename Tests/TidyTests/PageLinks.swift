import Foundation
import Testing

/// Links and names on pages.
enum PageLinks {
    /// Targets of a page's links that lie in this repository, as they are written. Text in fences has none.
    static func targets(_ page: String) -> [String] {
        // Regular expressions are slow; they look at few lines.
        prose(page).filter { $0.contains("](") }
            .flatMap { line in line.matches(of: #/\]\(([^)\s]+)\)/#).map { String($0.1) } }
            .filter { link in !["http:", "https:", "mailto:"].contains { link.hasPrefix($0) } }
    }

    /// The anchors that a page's headings have: small letters, digits, hyphens for blanks; a heading that
    /// stands there again has a number behind it.
    static func anchors(_ page: String) -> Set<String> {
        var counts: [String: Int] = [:]
        var found: Set<String> = []
        for line in prose(page) where line.hasPrefix("#") {
            let text = line.drop { $0 == "#" }.dropFirst()
            let heading = text.replacing(#/\[([^\]]*)\]\([^)]*\)/#) { $0.1 }
            let letters = heading.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
            let anchor = letters.replacing(" ", with: "-")
            let count = counts[anchor, default: 0]
            counts[anchor] = count + 1
            found.insert(count == 0 ? anchor : "\(anchor)-\(count)")
        }
        return found
    }

    /// The path that a link leads to, from the top of the repository.
    static func path(_ link: String, from page: String) -> String {
        let file = link.prefix { $0 != "#" }
        guard !file.isEmpty else { return page }
        var parts = page.split(separator: "/").dropLast()
        for part in file.split(separator: "/") {
            switch part {
            case ".": break
            case "..": parts = parts.dropLast()
            default: parts.append(part)
            }
        }
        return parts.joined(separator: "/")
    }

    /// The heading that a link leads to.
    static func anchor(_ link: String) -> String? {
        link.firstIndex(of: "#").map { String(link[link.index(after: $0)...]) }
    }

    /// Declarations that a page names beside their file: `Sources/….swift` (`A`, `b`), or `A`
    /// (`Sources/….swift`, `B`).
    static func declared(_ page: String) -> [(file: String, name: String)] {
        let behind = page.matches(
            of: #/`((?:Packages\/\w+\/)?Sources\/[\w.\/-]+\.swift)`(?: \(|, )(`\w+`(?:, `\w+`)*)/#)
        let before = page.matches(of: #/`(\w+)` \(`((?:Packages\/\w+\/)?Sources\/[\w.\/-]+\.swift)`/#)
        return behind.flatMap { match in
            match.2.split(separator: ", ").map { name in
                (file: String(match.1), name: String(name.dropFirst().dropLast()))
            }
        } + before.map { (file: String($0.2), name: String($0.1)) }
    }

    /// Whether a file declares a type or a function of that name.
    static func declares(_ name: String, _ text: String) -> Bool {
        ["struct", "class", "enum", "protocol", "actor", "func"].contains { word in
            text.ranges(of: "\(word) \(name)").contains { range in
                guard range.upperBound < text.endIndex else { return true }
                let next = text[range.upperBound]
                return !(next.isLetter || next.isNumber || next == "_")
            }
        }
    }

    private static func prose(_ page: String) -> [Substring] {
        var isCode = false
        return page.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            if line.hasPrefix("```") { isCode.toggle() }
            return !isCode
        }
    }
}

@Suite("Pages")
struct PageTests {
    private static let outer = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "Benchmarks/README.md"]

    @Test("Links on pages lead to files that are there, and to headings that these have")
    func links() throws {
        let pages =
            try Tree.texts(below: "docs", endings: ["md"]) + Self.outer.map { ($0, try Tree.text($0)) }
        var anchors: [String: Set<String>] = [:]
        for (path, text) in pages { anchors[path] = PageLinks.anchors(text) }
        var count = 0
        for (page, text) in pages {
            for link in PageLinks.targets(text) {
                count += 1
                let path = PageLinks.path(link, from: page)
                guard Tree.exists(path) else {
                    Issue.record("\(page): \(link)")
                    continue
                }
                if let anchor = PageLinks.anchor(link), let known = anchors[path], !known.contains(anchor) {
                    Issue.record("\(page): no heading for \(link)")
                }
            }
        }
        #expect(count > 300, "the links were not found")
    }

    @Test("Every page has its line in docs/README.md, and every decision in its own index")
    func index() throws {
        let (index, decisions) = ("docs/README.md", "docs/decisions/README.md")
        let listed = try Set(
            [index, decisions].flatMap { page in
                PageLinks.targets(try Tree.text(page)).map { PageLinks.path($0, from: page) }
            })
        let pages =
            try Tree.texts(below: "docs", endings: ["md", "yaml"]).map(\.path) + Self.outer.dropFirst()
        #expect(pages.count > 100, "the pages were not found")
        #expect(pages.filter { $0 != index && !listed.contains($0) } == [])
    }

    @Test("Names that the walk through the code gives are declared in the files beside them")
    func walk() throws {
        let named = PageLinks.declared(try Tree.text("docs/code-in-twenty-minutes.md"))
        #expect(named.count > 50, "the names were not found")
        for (file, name) in named {
            let isThere = try Tree.exists(file) && PageLinks.declares(name, Tree.text(file))
            if !isThere { Issue.record("\(file): \(name)") }
        }
    }

    @Test("Links, headings and names are read as a reader sees them")
    func samples() {
        let page = """
            # A `b`: c
            ## A [d](e.md)
            ## A [d](e.md)
            [x](y/z.md#w) [u](https://v)
            ```
            [n](o)
            ```
            """
        #expect(PageLinks.targets(page) == ["e.md", "e.md", "y/z.md#w"])
        #expect(PageLinks.anchors(page) == ["a-b-c", "a-d", "a-d-1"])
        #expect(PageLinks.path("../a.md#b", from: "pages/guides/c.md") == "pages/a.md")
        #expect(PageLinks.path("#b", from: "pages/c.md") == "pages/c.md")
        #expect(PageLinks.anchor("a.md#b") == "b" && PageLinks.anchor("a.md") == nil)
        let walk = "`Packages/P/Sources/A.swift` (`B`, `c`) gives a `D` (`Sources/E.swift`, `F`)"
        #expect(
            PageLinks.declared(walk).map { "\($0.file) \($0.name)" } == [
                "Packages/P/Sources/A.swift B", "Packages/P/Sources/A.swift c", "Sources/E.swift F",
                "Sources/E.swift D"
            ])
        #expect(PageLinks.declares("B", "package struct B: C {"))
        #expect(!PageLinks.declares("B", "struct BC {}\nlet b = B()"))
    }
}
