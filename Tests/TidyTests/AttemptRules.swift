import Foundation

/// A name may have several addresses, and whoever dials it makes a socket for each, at the same time perhaps.
/// So what belongs to one attempt is made for its channel, and no other attempt has a part in it: a handler
/// in two channels, or a promise that two may keep, ends with the first address that fails.
enum AttemptRules {
    /// The dialer, which races attempts and alone keeps their books.
    static let home = "Sources/Foundations/Dialling/"
    /// Load drivers and test support speak to one address of this machine; they keep the second rule alone.
    static let beside = "Sources/Proving/"

    static func all(_ files: [SwiftText]) -> [Violation] {
        let handlers = Set(files.flatMap(handlerTypes))
        return files.filter { !$0.path.hasPrefix(home) }.flatMap { file in
            bootstraps(file) + shared(file, handlers)
        }
    }

    /// Sockets that are opened past the dialer.
    static func bootstraps(_ file: SwiftText) -> [Violation] {
        guard !file.path.hasPrefix(beside) else { return [] }
        return file.places(of: "ClientBootstrap", "connect(host:").map { index, _ in
            Violation(rule: "attempt", path: file.path, line: index + 1, text: "a socket past the dialer")
        }
    }

    /// What a channel's initializer, or whoever prepares an attempt, takes from outside although it is one
    /// attempt's: a handler, a promise; and what it changes outside of its channel.
    static func shared(_ file: SwiftText, _ handlers: Set<String>) -> [Violation] {
        let functions = Rules.functions(file)
        return closures(file).flatMap { closure -> [Violation] in
            let around = functions.filter { $0.lines.contains(closure.lines.lowerBound) }
                .min { $0.lines.count < $1.lines.count }
            let before = around.map {
                file.code[$0.lines.lowerBound...closure.lines.lowerBound].joined(separator: "\n")
            }
            let own = declared(in: closure.text)
            let names = before.map { outside($0, handlers).subtracting(own) } ?? []
            let used = names.filter { closure.text.contains(word($0)) }.sorted()
            let changed = changes(in: closure.text).subtracting(own).sorted()
            return used.map { violation(file, closure, "\($0) is every attempt's") }
                + changed.map { violation(file, closure, "it changes \($0)") }
        }
    }

    private static func violation(
        _ file: SwiftText, _ closure: (lines: Range<Int>, text: String), _ text: String
    ) -> Violation {
        Violation(rule: "attempt", path: file.path, line: closure.lines.lowerBound + 1, text: text)
    }

    /// Classes that stand in channels.
    static func handlerTypes(_ file: SwiftText) -> [String] {
        file.places(of: "Handler").compactMap { _, line in
            line.firstMatch(of: #/\bclass (\w+)[^:]*:.*\bChannel(?:Inbound|Outbound|Duplex)?Handler\b/#)
                .map { String($0.1) }
        }
    }

    /// Closures that are run once for each attempt: a client's channel initializer, and what takes a channel
    /// and its attempt.
    private static func closures(_ file: SwiftText) -> [(lines: Range<Int>, text: String)] {
        let form = #/(?:\.channelInitializer\s*|prepare:\s*)\{|\{\s*\(?\w+, attempt\b/#
        return file.places(of: "channelInitializer", "attempt", "prepare:").compactMap { index, line in
            guard let match = line.firstMatch(of: form) else { return nil }
            var depth = 0
            var text = ""
            for place in index..<file.code.count {
                let rest =
                    place == index ? line[match.range.lowerBound...] : file.code[place][...]
                for character in rest {
                    if character == "{" { depth += 1 }
                    if depth > 0 { text.append(character) }
                    if character == "}" { depth -= 1 }
                    if character == "}", depth == 0 { return (index..<(place + 1), text) }
                }
                text.append("\n")
            }
            return nil
        }
    }

    /// Names of handlers and promises that a function has before a closure in it begins: parameters, and what
    /// it made.
    private static func outside(_ text: String, _ handlers: Set<String>) -> Set<String> {
        var names: Set<String> = []
        for match in text.matches(of: #/(\w+)\s*:\s*(?:@escaping )?(?:any )?(\w+)/#)
        where handlers.contains(String(match.2)) || match.2 == "EventLoopPromise" {
            names.insert(String(match.1))
        }
        for match in text.matches(of: #/\b(?:let|var) (\w+)(?:: [^=\n]+)?\s*=\s*(.*)/#) {
            let made = match.2.matches(of: #/(?:^|\W)([A-Z]\w*)(?:<[^>]*>)?\(/#).contains {
                handlers.contains(String($0.1))
            }
            if made || match.2.contains("makePromise(") { names.insert(String(match.1)) }
        }
        return names
    }

    private static func declared(in text: String) -> Set<String> {
        var names = Set(text.matches(of: #/\b(?:let|var) (\w+)/#).map { String($0.1) })
        // Its own parameters.
        if let head = text.firstMatch(of: #/^\{\s*(?:\[[^\]]*\]\s*)?\(?([\w\s,:<>]+?)\)?\s+in\b/#) {
            for part in head.1.split(separator: ",") {
                names.insert(String(part.prefix { $0 != ":" }).trimmingCharacters(in: .whitespaces))
            }
        }
        return names
    }

    /// What stands before a point in an assignment, or in a call that adds.
    private static func changes(in text: String) -> Set<String> {
        let form = #/(?:^|[^\w.])(\w+)(?:\.\w+|\[[^\]]*\])+(?:\s*[-+]?=[^=]|\.append\()/#
        return Set(text.matches(of: form).map { String($0.1) })
    }

    private static func word(_ name: String) -> Regex<Substring> {
        // A point is no boundary of a word between two of them. The names are those of Swift source, so that
        // none is a form of its own.
        (try? Regex("(?:^|\\W)\(name)(?:$|\\W)", as: Substring.self)) ?? #/$^/#
    }
}
