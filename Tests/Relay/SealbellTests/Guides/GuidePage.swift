import Foundation
import PushTesting

/// What a page of the guides asks its reader to do, in the page's order.
struct GuidePage {
    enum Item: Sendable {
        /// Indented, as the reader copies it: a line with those that continue it.
        case line(String)
        /// In the running text, between backticks.
        case inline(String)
        /// Between fences.
        case block(language: String, text: String)

        var text: String {
            switch self {
            case .line(let text), .inline(let text): text
            case .block(let language, let text): "```" + language + "\n" + text
            }
        }
    }

    let name: String
    let text: String
    let items: [Item]

    /// Programs whose command lines in the running text are looked at.
    private static let programs = ["sealbell ", "curl ", "sqlite3 ", "umask "]
    /// Languages of blocks that are no reader's step here: the code has tests that build it, and Caddy is
    /// tried by `make interop`.
    private static let apart: Set<Substring> = ["swift", "caddy", "sql"]

    /// - Parameter name: from the repository's root.
    init(_ name: String) throws {
        self.name = name
        text = try String(contentsOf: repositoryRoot().appending(path: name), encoding: .utf8)
        var items: [Item] = []
        var fence: (language: Substring, lines: [Substring])?
        var open: String?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if let begun = fence {
                if !line.hasPrefix("```") {
                    fence?.lines.append(line)
                    continue
                }
                fence = nil
                if Self.apart.contains(begun.language) { continue }
                let whole = begun.lines.joined(separator: "\n") + "\n"
                items.append(.block(language: String(begun.language), text: whole))
            } else if line.hasPrefix("```") {
                fence = (line.dropFirst(3), [])
            } else if line.hasPrefix("    "), !line.allSatisfy({ $0 == " " }) {
                // A drawing.
                if line.contains(where: "│┌└".contains) { continue }
                // In a list it is indented once more.
                let whole = open.map { $0 + "\n" + line.dropFirst(4) } ?? String(line.drop { $0 == " " })
                open = whole.hasSuffix("\\") ? whole : nil
                if open == nil { items.append(.line(whole)) }
            } else {
                items += line.matches(of: #/`([^`]+)`/#).map { String($0.1) }
                    .filter { span in Self.programs.contains { span.hasPrefix($0) } }.map { .inline($0) }
            }
        }
        self.items = items
    }

    /// Whether a command of the running text only names one that the page has its reader run: its words are
    /// the first ones of that.
    func isNamed(_ command: String, among run: [String]) -> Bool {
        let words = command.split(separator: " ")
        return run.flatMap { $0.split(separator: "|") }
            .contains { $0.split { " \\\n".contains($0) }.starts(with: words) }
    }
}
