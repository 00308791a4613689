import WireFormats

/// What was measured, in the order in which a person wants to read it: as lines of text or as one JSON
/// object.
package struct BenchReport: Sendable {
    package enum Figure: Sendable {
        case count(Int)
        /// With so many digits behind the point.
        case number(Double, digits: Int)
        case text(String)
        case flag(Bool)
    }

    package private(set) var rows: [(name: String, figure: Figure)] = []

    package init() {}

    package mutating func add(_ name: String, _ figure: Figure) { rows.append((name, figure)) }
    package mutating func add(_ name: String, _ count: Int) { add(name, .count(count)) }
    package mutating func add(_ name: String, _ number: Double, digits: Int = 3) {
        add(name, .number(number.isFinite ? number : 0, digits: digits))
    }

    /// The count of that name; `nil` when there is none.
    package func count(_ name: String) -> Int? {
        for case (name, .count(let value)) in rows { return value }
        return nil
    }

    /// One JSON object on one line; names are snake case.
    package func json() -> String {
        var writer = JSONWriter()
        writer.beginObject()
        for row in rows {
            writer.key(row.name)
            switch row.figure {
            case .count(let value): writer.int(Int64(value))
            case .number(let value, let digits): writer.raw(Array(decimal(value, digits).utf8))
            case .text(let text): writer.string(text)
            case .flag(let value): writer.bool(value)
            }
        }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// One line for each figure, names padded to one column.
    package func lines() -> [String] {
        let width = (rows.map(\.name.utf8.count).max() ?? 0) + 2
        return rows.map { row in
            let name = row.name.map { $0 == "_" ? " " : $0 }
            let value =
                switch row.figure {
                case .count(let value): String(value)
                case .number(let value, let digits): decimal(value, digits)
                case .text(let text): text
                case .flag(let value): value ? "yes" : "no"
                }
            return String(name) + String(repeating: " ", count: width - name.count) + value
        }
    }
}

/// A number with a fixed count of digits behind the point.
func decimal(_ value: Double, _ digits: Int) -> String {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let scaled = Int64((abs(value) * scale).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard digits > 0 else { return sign + String(scaled) }
    let tail = String(scaled % Int64(scale))
    return sign + String(scaled / Int64(scale)) + "." + String(repeating: "0", count: digits - tail.count)
        + tail
}
