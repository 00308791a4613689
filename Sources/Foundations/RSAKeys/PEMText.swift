package import PushModel

/// PEM (RFC 7468), leniently: line ends of any kind, lines of any width, with a line end behind it or none.
///
/// Nothing may stand before the first label or behind the last; the base64 within is read strictly.
package enum PEMText {
    /// A key of 4096 bits takes 3.2 KiB as PKCS#8; nothing larger is looked at.
    package static let limitBytes = 4_096
    private static let lineCharacters = 64

    /// The DER within.
    ///
    /// - Parameter label: such as `PUBLIC KEY`.
    /// - Returns: `nil` for any other text.
    package static func der(_ text: UnsafeRawBufferPointer, label: StaticString) -> Secret? {
        guard text.count <= limitBytes else { return nil }
        let (begin, end) = (marker("BEGIN", label), marker("END", label))
        var rest = trimmed(text[...])
        guard rest.starts(with: begin), rest.count >= begin.count + end.count,
            rest.suffix(end.count).elementsEqual(end)
        else { return nil }
        rest = rest.dropFirst(begin.count).dropLast(end.count)
        // The labels stand on lines of their own.
        guard let first = rest.first, let last = rest.last, isLineEnd(first), isLineEnd(last) else {
            return nil
        }
        return decode(rest)
    }

    /// The text of a DER: 64 characters a line, a newline at the end.
    package static func text(_ der: UnsafeRawBufferPointer, label: StaticString) -> Secret {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var out: [UInt8] = []
        out.reserveCapacity(der.count * 3 / 2 + 128)
        defer { out.withUnsafeMutableBytes { wipe($0) } }
        out += marker("BEGIN", label) + [0x0A]
        var column = 0
        for at in stride(from: 0, to: der.count, by: 3) {
            if column == lineCharacters {
                out.append(0x0A)
                column = 0
            }
            let count = min(3, der.count - at)
            var group = UInt32(der[at]) << 16
            if count > 1 { group |= UInt32(der[at + 1]) << 8 }
            if count > 2 { group |= UInt32(der[at + 2]) }
            out.append(digits[Int(group >> 18)])
            out.append(digits[Int(group >> 12 & 63)])
            out.append(count > 1 ? digits[Int(group >> 6 & 63)] : 0x3D)
            out.append(count > 2 ? digits[Int(group & 63)] : 0x3D)
            column += 4
        }
        out += [0x0A] + marker("END", label) + [0x0A]
        return Secret(out)
    }

    private static func marker(_ word: StaticString, _ label: StaticString) -> [UInt8] {
        Array("-----\(word) \(label)-----".utf8)
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    private static func trimmed(_ text: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var text = text
        while let last = text.last, isLineEnd(last) { text = text.dropLast() }
        return text
    }

    private static func decode(_ text: Slice<UnsafeRawBufferPointer>) -> Secret? {
        var digits: [UInt8] = []
        digits.reserveCapacity(text.count)
        defer { digits.withUnsafeMutableBytes { wipe($0) } }
        var padding = 0
        for byte in text where !isLineEnd(byte) {
            if byte == 0x3D {
                padding += 1
            } else {
                guard padding == 0, let value = value(byte) else { return nil }
                digits.append(value)
            }
        }
        guard padding <= 2, (digits.count + padding).isMultiple(of: 4), digits.count % 4 != 1 else {
            return nil
        }
        let count = digits.count * 3 / 4
        var isCanonical = true
        let der = Secret(count: count) { out in
            var (group, held, at) = (UInt32(0), UInt32(0), 0)
            for digit in digits {
                group = group << 6 | UInt32(digit)
                held += 6
                guard held >= 8 else { continue }
                held -= 8
                out[at] = UInt8(truncatingIfNeeded: group >> held)
                at += 1
            }
            isCanonical = group & (1 << held - 1) == 0
        }
        return isCanonical ? der : nil
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x41...0x5A: digit - 0x41
        case 0x61...0x7A: digit - 0x61 + 26
        case 0x30...0x39: digit - 0x30 + 52
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}
