/// The few forms of DER (ITU-T X.690) that a certificate needs.
///
/// A certificate package would do as well, but a dozen lines do not need one, and building one takes minutes.
enum DistinguishedEncoding {
    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if content.count < 128 {
            length = [UInt8(content.count)]
        } else {
            var rest = content.count
            while rest > 0 {
                length.insert(UInt8(rest & 255), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    static func sequence(_ parts: [UInt8]...) -> [UInt8] { element(0x30, parts.flatMap { $0 }) }
    static func set(_ content: [UInt8]) -> [UInt8] { element(0x31, content) }
    static func octets(_ content: [UInt8]) -> [UInt8] { element(0x04, content) }
    static func text(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }
    static func bits(_ content: [UInt8]) -> [UInt8] { element(0x03, [0] + content) }
    static let yes: [UInt8] = [0x01, 0x01, 0xFF]

    /// A positive number from big-endian bytes.
    static func integer(_ bytes: [UInt8]) -> [UInt8] {
        let trimmed = Array(bytes.drop { $0 == 0 })
        let first = trimmed.first ?? 0
        return element(0x02, trimmed.isEmpty || first >= 0x80 ? [0] + trimmed : trimmed)
    }

    /// An object identifier whose arcs from the third on fit in 28 bits.
    static func identifier(_ arcs: UInt32...) -> [UInt8] {
        var content: [UInt8] = [UInt8(arcs[0] * 40 + arcs[1])]
        for arc in arcs.dropFirst(2) {
            var groups: [UInt8] = [UInt8(arc & 127)]
            var rest = arc >> 7
            while rest > 0 {
                groups.insert(UInt8(rest & 127) | 0x80, at: 0)
                rest >>= 7
            }
            content += groups
        }
        return element(0x06, content)
    }

    /// GeneralizedTime, `YYYYMMDDHHMMSSZ`.
    static func time(unixSeconds: Int64) -> [UInt8] {
        let date = CivilDate(unixSeconds: unixSeconds)
        let text =
            digits(date.year, 4) + digits(date.month, 2) + digits(date.day, 2) + digits(date.hour, 2)
            + digits(date.minute, 2) + digits(date.second, 2) + "Z"
        return element(0x18, Array(text.utf8))
    }

    private static func digits(_ number: Int64, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }
}
