import Foundation

/// Stored properties of value types, and where they are read.
enum Fields {
    struct Field: Hashable {
        let type: String
        let name: String
    }

    /// Stored properties of the structs of a file that a room keeps for others: those that are not private,
    /// of structs at file level or inside one.
    static func stored(_ file: SwiftText) -> [Field] {
        var found: [Field] = []
        // Names and columns of the types that are open.
        var open: [(name: String, column: Int, isStruct: Bool)] = []
        for line in file.lines {
            let text = String(line)
            let column = text.prefix { $0 == " " }.count
            let words = text.trimmingCharacters(in: .whitespaces)
            if words.isEmpty { continue }
            while let last = open.last, column <= last.column { open.removeLast() }
            if let match = words.firstMatch(of: #/^(struct|enum|class|extension|actor|protocol) (\w+)/#) {
                open.append((String(match.2), column, match.1 == "struct"))
                continue
            }
            guard let owner = open.last, owner.isStruct, column == owner.column + 4,
                let match = words.firstMatch(of: #/^(?:var|let) (\w+)(?:: [^{]*| = [^{]*)$/#)
            else { continue }
            found.append(Field(type: owner.name, name: String(match.1)))
        }
        return found
    }

    /// Whether a text reads a member of that name of some value: not `.name` alone, which is a case or a
    /// label's own.
    static func reads(_ text: String, _ name: String) -> Bool {
        var rest = text[...]
        while let place = rest.range(of: "." + name) {
            let before =
                place.lowerBound == text.startIndex ? nil : text[text.index(before: place.lowerBound)]
            let after = place.upperBound == text.endIndex ? nil : text[place.upperBound]
            let isMember = before.map { $0.isLetter || $0.isNumber || "_)]?!}\\".contains($0) } ?? false
            let isWhole = after.map { !($0.isLetter || $0.isNumber || $0 == "_") } ?? true
            if isMember && isWhole { return true }
            rest = rest[place.upperBound...]
        }
        return false
    }
}
