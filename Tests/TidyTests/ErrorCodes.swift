/// Codes that the sources declare and rows that `docs/errors.md` has.
enum ErrorCodes {
    /// `Owner.code` for the raw values of every `enum Code: String` (or `…Code: String`) in a file. The owner is
    /// the type the enumeration stands in, or the enumeration itself at the top of a file; for `FooErrorCode:
    /// String, PushErrorCode` (or `AdvisingErrorCode`) it is `FooError`.
    static func declared(_ file: SwiftText) -> [(code: String, line: Int)] {
        var found: [(String, Int)] = []
        guard !file.places(of: "enum").isEmpty else { return [] }
        var inside: (depth: Int, owner: String)?
        var level = 0
        var type = ""
        var goesOn = false
        for (index, code) in file.code.enumerated() {
            if let match = code.firstMatch(of: #/\b(?:struct|extension|class|actor)\s+(\w+)/#), level == 0 {
                type = String(match.1)
            }
            if inside == nil, let match = code.firstMatch(of: #/\benum\s+(\w*Code)\s*:\s*String\b/#) {
                let isCoded = code.contains("PushErrorCode") || code.contains("AdvisingErrorCode")
                let name = isCoded ? match.1.dropLast("Code".count) : match.1
                inside = (level, level == 0 ? String(name) : type)
            }
            if let inside {
                // A list of cases may run over several lines.
                let head = goesOn ? "case " : ""
                let names = cases(head + file.lines[index], code: head + code)
                goesOn = !names.isEmpty && code.reversed().first { $0 != " " } == ","
                found += names.map { ("\(inside.owner).\($0)", index + 1) }
            }
            for character in code {
                if character == "{" { level += 1 }
                if character == "}" { level -= 1 }
            }
            if let opened = inside?.depth, level <= opened, code.contains("}") { inside = nil }
        }
        return found
    }

    /// `case requestExpired = "REQUEST_EXPIRED", other` → `REQUEST_EXPIRED`, `other`.
    private static func cases(_ line: String, code: String) -> [String] {
        // A `case` of a switch inside the enumeration has a colon; a declared case has none.
        guard let start = code.firstMatch(of: #/(?:^|\{)\s*case\s+(?!\.)/#),
            !code.contains(":") || isHead(code)
        else { return [] }
        let offset = code.distance(from: code.startIndex, to: start.range.upperBound)
        let rest = line.dropFirst(offset).prefix { $0 != "}" && $0 != "/" }
        return rest.split(separator: ",").compactMap { part in
            let halves = part.split(separator: "=", maxSplits: 1)
            guard let name = halves.first else { return nil }
            let raw = halves.count == 2 ? halves[1] : name
            let trimmed = raw.filter { !" \"`".contains($0) }
            return trimmed.isEmpty ? nil : trimmed
        }
    }

    /// `enum Code: String { case a, b }`: the colon belongs to the head.
    private static func isHead(_ code: String) -> Bool { code.contains(#/\benum\b/#) }

    /// `Owner.code` for every row that opens with `` | `code` | `` below a heading `` ## `Owner` … ``.
    static func documented(_ page: String) -> Set<String> {
        var owner = ""
        var found: Set<String> = []
        for line in page.split(separator: "\n") {
            if let match = line.firstMatch(of: #/^##+\s+`(\w+)`/#) { owner = String(match.1) }
            if let match = line.firstMatch(of: #/^\|\s*`([^`]+)`\s*\|/#) {
                found.insert("\(owner).\(match.1)")
            }
        }
        return found
    }
}
