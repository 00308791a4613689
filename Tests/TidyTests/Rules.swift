import Foundation

/// The rules that look at one file. Each returns the places where it is not kept.
enum Rules {
    static let fileLimitLines = 600
    static let fileQuestionLines = 400
    static let functionLimitLines = 60
    /// What may stand around the one exhaustive switch of a longer function.
    static let aroundSwitchLines = 20
    static let lineLimitColumns = 110

    /// Every rule of this file, in one call.
    static func all(_ file: SwiftText) -> [Violation] {
        fileLength(file) + lineLength(file) + functionLength(file) + bannedCalls(file) + swallowedErrors(file)
            + missingSafety(file) + portSize(file) + lockedClosures(file) + rolesInside(file)
    }

    static func fileLength(_ file: SwiftText) -> [Violation] {
        // A closing line break leaves one empty line behind the last.
        let count = file.lines.last == "" ? file.lines.count - 1 : file.lines.count
        guard count > fileLimitLines else { return [] }
        return [Violation(rule: "file length", path: file.path, line: count, text: "\(count) lines")]
    }

    static func lineLength(_ file: SwiftText) -> [Violation] {
        file.lines.enumerated().compactMap { index, line in
            guard line.count > lineLimitColumns else { return nil }
            return Violation(
                rule: "line length", path: file.path, line: index + 1, text: "\(line.count) columns")
        }
    }

    /// Calls that trap, block, print, or start a task that nobody awaits.
    static func bannedCalls(_ file: SwiftText) -> [Violation] {
        let always: [(String, Regex<Substring>)] = [
            ("print", #/(?:^|[^\w.])print\(/#),
            ("forced try", #/\btry!/#),
            ("forced cast", #/\bas!/#),
            ("fatalError", #/\bfatalError\(/#),
            ("detached task", #/\bTask(?:<[^>]*>)?\s*\.\s*(?:detached|immediate)\b/#),
            ("blocking sleep", #/\bThread\.sleep|(?:^|[^\w.])u?sleep\(/#)
        ]
        let loose: Regex<Substring> = #/(?:^|[^\w.])Task(?:<[^>]*>)?\s*(?:\([^)]*\))?\s*\{/#
        var found: [Violation] = []
        let texts = file.places(of: "print(", "try!", "as!", "fatalError(", "Task", "sleep")
        for (index, line) in texts {
            // A sleep that is awaited, or declared, blocks no thread.
            let line = line.replacing(#/\b(?:func|await) sleep\(/#, with: "")
            for (name, form) in always where line.contains(form) {
                found.append(Violation(rule: "banned call", path: file.path, line: index + 1, text: name))
            }
            if !isEntry(file.path), line.contains(loose) {
                found.append(
                    Violation(
                        rule: "banned call", path: file.path, line: index + 1, text: "task without owner"))
            }
        }
        return found
    }

    /// The executable's entry, and the simulation's machines: the two places that may start a task.
    static func isEntry(_ path: String) -> Bool {
        ["Sources/Relay/RelayProgram/Sealbell.swift", "Sources/Proving/Simulation/Scheduler.swift"].contains(
            path)
    }

    /// `catch {}`, and `try?` with no comment on its line or right above it.
    static func swallowedErrors(_ file: SwiftText) -> [Violation] {
        var found: [Violation] = []
        for (index, line) in file.places(of: "catch", "try?") {
            if line.contains(#/\bcatch\s*\{\s*\}/#) {
                found.append(
                    Violation(rule: "swallowed error", path: file.path, line: index + 1, text: "catch {}"))
            }
            let near = file.lines[max(0, index - 3)..<min(file.lines.count, index + 2)]
            if line.contains(#/\btry\?/#), !near.contains(where: { $0.contains("//") }) {
                found.append(
                    Violation(
                        rule: "swallowed error", path: file.path, line: index + 1, text: "try? without why"))
            }
        }
        return found
    }

    /// A closure that a `Mutex` holds by itself: each look at it takes it out in one form and puts it back in
    /// another, wrapped once more, so that it grows with each call. In a structure it keeps its form.
    static func lockedClosures(_ file: SwiftText) -> [Violation] {
        let closures = file.places(of: "typealias").compactMap { _, line in
            line.firstMatch(of: #/typealias (\w+) = .*->/#).map { String($0.1) }
        }
        return file.places(of: "Mutex<").compactMap { index, line in
            // An array of closures keeps their form, and so does any structure.
            let isPlain = line.contains(#/Mutex<(?!\[)[^<>]*->/#)
            let name = line.firstMatch(of: #/Mutex<\(*(\w+)\??\)*>/#).map { String($0.1) }
            guard isPlain || name.map(closures.contains) ?? false else { return nil }
            return Violation(
                rule: "locked closure", path: file.path, line: index + 1, text: "not in a structure")
        }
    }

    /// A face or a post of a protocol that looks into its reception's role. What it needs of the protocol it
    /// is given as a conversation (docs/decisions/0140-a-conversation-stands-in-its-protocol.md).
    static func rolesInside(_ file: SwiftText) -> [Violation] {
        guard file.path.contains(#/\/RelayProgram\/Protocols\/.*(?:Face|Post)\.swift$/#) else { return [] }
        return file.places(of: ".role").compactMap { index, line in
            // No `\b`: a point between letters ends no word by Unicode's rules.
            guard line.contains(#/\.role(?!\w)/#) else { return nil }
            return Violation(
                rule: "role's inside", path: file.path, line: index + 1, text: "a face or a post reads it")
        }
    }

    /// `@unchecked Sendable` and `nonisolated(unsafe)` without a `Safety:` comment on the line, right above,
    /// or as the first line of the body.
    static func missingSafety(_ file: SwiftText) -> [Violation] {
        file.places(of: "@unchecked", "nonisolated").compactMap { index, line in
            let form = #/@unchecked\s+Sendable|\bnonisolated\(unsafe\)/#
            guard line.contains(form), !isExplained(index, in: file, by: #/\/\/.*\bSafety:/#) else {
                return nil
            }
            return Violation(rule: "safety", path: file.path, line: index + 1, text: "no line `// Safety:`")
        }
    }

    /// Whether a comment that matches stands on the line, or in the run of comments and attributes above it.
    /// Declarations that share a reason may stand in one block right below it.
    private static func isExplained(_ index: Int, in file: SwiftText, by form: some RegexComponent) -> Bool {
        if file.lines[index].contains(form) { return true }
        if file.lines[index].hasSuffix("{"), index + 1 < file.lines.count,
            file.lines[index + 1].contains(form)
        {
            return true
        }
        var above = index - 1
        while above >= 0 {
            let line = file.lines[above].trimmingCharacters(in: .whitespaces)
            let isComment = line.hasPrefix("//")
            let isSibling =
                line.hasPrefix("@") || line.contains("nonisolated(unsafe)") || line.contains("@unchecked")
            if isComment, line.contains(form) { return true }
            guard isComment || isSibling else { return false }
            above -= 1
        }
        return false
    }
}
