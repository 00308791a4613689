package import PushModel
import WireFormats

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
        var (out, digits) = ([UInt8](), [UInt8]())
        digits.reserveCapacity((der.count + 2) / 3 * 4)
        out.reserveCapacity(der.count * 3 / 2 + 128)
        defer {
            out.withUnsafeMutableBytes { wipe($0) }
            digits.withUnsafeMutableBytes { wipe($0) }
        }
        Base64.append(der, to: &digits)
        out += marker("BEGIN", label)
        for at in stride(from: 0, to: digits.count, by: lineCharacters) {
            out.append(0x0A)
            out += digits[at..<min(at + lineCharacters, digits.count)]
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
        digits += text.lazy.filter { !isLineEnd($0) }
        return digits.withUnsafeBytes { digits in
            guard let count = Base64.decodedCount(digits) else { return nil }
            var isRead = false
            let der = Secret(count: count) { out in
                // Whatever is wrong with it, it is no PEM.
                isRead = (try? Base64.decode(digits, into: out)) != nil
            }
            return isRead ? der : nil
        }
    }
}
