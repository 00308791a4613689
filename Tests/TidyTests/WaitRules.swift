import Foundation

/// What a test's source shows of how it waits: a test leans neither on being scheduled in time nor waits
/// without an end that says why (`PushTesting`'s `Patience`).
enum WaitRules {
    /// A suite's time limit is the net below all other bounds. Starved, with two dozen tests on one thread,
    /// most of them take minutes.
    static let timeLimitMinutes = 30

    /// A comment with this word, on the line or right above it, says what ends a wait, or what a span is good
    /// for.
    static var word: Regex<Substring> { #/\/\/.*\bBound:/# }

    static func all(_ file: SwiftText) -> [Violation] { waits(file) + timeLimits(file) }

    // A point is no boundary of a word between two of them: hence the other form where one may stand before.
    private static var forms: [(name: String, form: Regex<Substring>)] {
        [
            (
                "unbounded read of a stream: AsyncStream.next(_:)",
                #/\bfor(?: try)? await\b(?!.*\bin group\b)/#
            ),
            ("iterator, which has no bound: AsyncStream.next(_:)", #/\.makeAsyncIterator\(/#),
            (
                "continuation, which nobody need resume: Signal, Noted or AwaitedCount",
                #/\bwith(?:Checked|Unsafe)(?:Throwing)?Continuation\b/#
            ),
            ("sleep: an event can be awaited", #/\bTask\.sleep\(|[cC]lock\(?\)?\.sleep\(/#),
            ("spinning: an event can be awaited, or asked(for:)", #/\bwhile\b.*\bTask\.yield\(\)/#),
            ("a span that was to be short", #/(?:^|\W)now\s*-\s*\w+\s*<=?\s/#)
        ]
    }

    /// Waits that end by nothing but their event, pauses, and spans that were to be short.
    static func waits(_ file: SwiftText) -> [Violation] {
        var found: [Violation] = []
        let all = forms
        let texts = file.places(
            of: "await", "makeAsyncIterator", "Continuation", "sleep", "yield", "now -", "now-")
        for (index, line) in texts {
            for (name, form) in all where line.contains(form) && !isExplained(index, in: file) {
                found.append(Violation(rule: "wait", path: file.path, line: index + 1, text: name))
            }
        }
        return found
    }

    /// On the line, or in the run of comments above it.
    private static func isExplained(_ index: Int, in file: SwiftText) -> Bool {
        if file.lines[index].contains(word) { return true }
        var above = index - 1
        while above >= 0, file.lines[above].trimmingCharacters(in: .whitespaces).hasPrefix("//") {
            if file.lines[above].contains(word) { return true }
            above -= 1
        }
        return false
    }

    /// Time limits that a starved machine would miss, limits of single tests, and suites that wait and have
    /// none. A suite's limit is handed on to its tests and counts for each of them by itself.
    static func timeLimits(_ file: SwiftText) -> [Violation] {
        func violation(_ index: Int, _ text: String) -> Violation {
            Violation(rule: "time limit", path: file.path, line: index + 1, text: text)
        }
        var found: [Violation] = []
        for (index, line) in file.places(of: "timeLimit") {
            guard let match = line.firstMatch(of: #/\.timeLimit\(\.minutes\((\d+)\)\)/#) else { continue }
            if Int(match.1) ?? 0 < timeLimitMinutes {
                found.append(violation(index, "\(match.1) minutes are less than \(timeLimitMinutes)"))
            }
        }
        func isLimited(_ index: Int, upTo declaration: Regex<Substring>) -> Bool {
            // The attribute may go on over a few lines, up to what it stands before.
            let rest = file.code[index..<min(index + 8, file.code.count)]
            let end = rest.firstIndex { $0.contains(declaration) } ?? rest.endIndex - 1
            return file.code[index...end].contains { $0.contains("timeLimit") }
        }
        for (index, _) in file.places(of: "@Test") where isLimited(index, upTo: #/\bfunc\b/#) {
            found.append(violation(index, "a test has one of its own: it belongs to the suite"))
        }
        guard file.code.contains(where: { $0.contains(#/\bawait\b/#) }) else { return found }
        for (index, _) in file.places(of: "@Suite")
        where !isLimited(index, upTo: #/\b(?:struct|class|actor|enum)\b/#) {
            found.append(violation(index, "a suite that waits has none"))
        }
        return found
    }
}
