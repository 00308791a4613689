/// Rows in columns below a header, two spaces between.
enum TextTable {
    /// - Returns: the header and a line for each row; nothing where there is no row, as a program that reads
    ///   the lines expects it.
    static func lines(_ header: [String], _ rows: [[String]], isStyled: Bool = false) -> [String] {
        guard !rows.isEmpty else { return [] }
        let widths = header.indices.map { column in
            ([header] + rows).map { $0[column].count }.max() ?? 0
        }
        func line(_ cells: [String]) -> String {
            let padded = zip(cells, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            return padded.joined(separator: "  ").trimmed(of: " ")
        }
        return [Style.bold.on(line(header), isStyled)] + rows.map(line)
    }
}

extension String {
    /// Without those characters at its end.
    fileprivate func trimmed(of character: Character) -> String {
        let count = reversed().prefix { $0 == character }.count
        return String(dropLast(count))
    }
}

/// How a word stands out on a terminal.
enum Style: String {
    case bold = "1"
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// The text itself where nothing is styled: in a file, in a pipe, or where the person wants none.
    func on(_ text: String, _ isStyled: Bool) -> String {
        isStyled ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Whether output that goes to a terminal, or not, is styled: `NO_COLOR` that holds anything says no
    /// (no-color.org), and so does a terminal that knows of no styles.
    static func isWanted(isTerminal: Bool, _ environment: [String: String]) -> Bool {
        isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }
}
