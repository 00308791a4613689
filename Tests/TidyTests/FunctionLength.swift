extension Rules {
    /// Functions longer than `functionLimitLines`, unless one exhaustive `switch` (no `default`) is all but
    /// `aroundSwitchLines` of them.
    static func functionLength(_ file: SwiftText) -> [Violation] {
        functions(file).compactMap { function in
            let count = function.lines.count
            guard count > functionLimitLines else { return nil }
            if count - longestExhaustiveSwitch(file, within: function.lines) <= aroundSwitchLines {
                return nil
            }
            return Violation(
                rule: "function length", path: file.path, line: function.lines.lowerBound + 1,
                text: "\(function.name): \(count) lines")
        }
    }

    /// Name and lines (from the declaration to its closing brace) of every function and initialiser.
    static func functions(_ file: SwiftText) -> [(name: String, lines: Range<Int>)] {
        let form = #/(?:^|[^\w.`])(?:func\s+(`[^`]+`|[^\s(<]+)|(init)[?!]?(?=[<(])|(deinit)(?=\s*\{))/#
        return file.places(of: "func", "init", "deinit").compactMap { index, line in
            guard let match = line.firstMatch(of: form) else { return nil }
            // `self.init(` and `super.init(` are excluded by the form; a bare call of `init(` has no body.
            guard let end = closingLine(file, from: index) else { return nil }
            let name = match.1 ?? match.2 ?? match.3 ?? ""
            return (String(name), index..<(end + 1))
        }
    }

    /// The line on which the body that opens at or after `first` closes; `nil` when a declaration has no body.
    private static func closingLine(_ file: SwiftText, from first: Int) -> Int? {
        var depth = 0
        var parentheses = 0
        var opened = false
        for index in first..<file.code.count {
            for character in file.code[index] {
                switch character {
                case "(" where !opened: parentheses += 1
                case ")" where !opened: parentheses -= 1
                case "{" where opened || parentheses == 0:
                    depth += 1
                    opened = true
                case "}" where opened || parentheses == 0:
                    depth -= 1
                    // A brace that closes before one has opened belongs to what stands around: a requirement.
                    if depth < 0 { return nil }
                    if opened, depth == 0 { return index }
                default: break
                }
            }
            // A requirement of a protocol ends with its line; a wrapped signature ends in an open one.
            if !opened, parentheses == 0, index > first || !endsOpen(file, index) {
                let next = index + 1 < file.code.count ? file.code[index + 1] : ""
                let trimmed = next.drop { $0 == " " }
                let goesOn =
                    trimmed.hasPrefix("{") || trimmed.hasPrefix("->") || trimmed.hasPrefix("where")
                    || trimmed.hasPrefix("async") || trimmed.hasPrefix("throws") || trimmed.hasPrefix(")")
                if !goesOn, !endsOpen(file, index) { return nil }
            }
        }
        return nil
    }

    private static func endsOpen(_ file: SwiftText, _ index: Int) -> Bool {
        let line = file.code[index].reversed().drop { $0 == " " }
        guard let last = line.first else { return false }
        return last == "," || last == "(" || last == ">" || last == "-"
    }

    /// Number of lines of the longest `switch` in these lines that has no `default` of its own.
    private static func longestExhaustiveSwitch(_ file: SwiftText, within lines: Range<Int>) -> Int {
        var longest = 0
        for index in lines
        where file.code[index].contains("switch") && file.code[index].contains(#/\bswitch\b[^{]*\{/#) {
            guard let end = closingLine(file, from: index), end < lines.upperBound else { continue }
            let indent = file.code[index].prefix { $0 == " " }.count
            let hasDefault = (index...end).contains { place in
                file.code[place].prefix { $0 == " " }.count == indent
                    && file.code[place].contains(#/^\s*(?:@unknown\s+)?default\s*:/#)
            }
            if !hasDefault { longest = max(longest, end - index + 1) }
        }
        return longest
    }
}
