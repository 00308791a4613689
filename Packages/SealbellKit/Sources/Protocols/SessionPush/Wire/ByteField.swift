import PushModel
import WireFormats

/// A byte field of JSON: hex digits of either case, or base64 with or without its padding (§2). Base64url is
/// refused, and so are raw bytes, which a deployed server accepts by accident.
enum ByteField {
    /// - Returns: exactly that many bytes; `nil` for anything else.
    static func decode(_ text: JSONStringSlice, count: Int) -> Secret? {
        guard text.raw.count <= SessionLimits.fieldBytes else { return nil }
        if !text.hasEscapes { return decode(text.raw, count: count) }
        return text.secret().reveal { decode($0, count: count) }
    }

    static func decode(_ text: UnsafeRawBufferPointer, count: Int) -> Secret? {
        if text.count == 2 * count, let bytes = Hex.secret(text) { return bytes }
        return base64(text, count)
    }

    private static func base64(_ text: UnsafeRawBufferPointer, _ count: Int) -> Secret? {
        var end = text.count
        while end > 0, text[end - 1] == 0x3D { end -= 1 }
        guard end == (8 * count + 5) / 6 else { return nil }
        var isBase64 = true
        let bytes = Secret(count: count) { out in
            isBase64 = bits(UnsafeRawBufferPointer(rebasing: text[..<end]), 6, into: out) { digit in
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
        return isBase64 ? bytes : nil
    }

    /// Writes the bits of the digits one after another, and drops the last ones if they make no whole byte.
    /// Returns whether all are digits.
    static func bits(
        _ text: UnsafeRawBufferPointer, _ each: UInt32, into out: UnsafeMutableRawBufferPointer,
        _ value: (UInt8) -> UInt8?
    ) -> Bool {
        var (group, held, at) = (UInt32(0), UInt32(0), 0)
        for digit in text {
            guard let value = value(digit) else { return false }
            group = group << each | UInt32(value)
            held += each
            guard held >= 8, at < out.count else { continue }
            held -= 8
            out[at] = UInt8(truncatingIfNeeded: group >> held)
            at += 1
        }
        return at == out.count
    }
}
