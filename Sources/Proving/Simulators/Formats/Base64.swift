/// Base64 (RFC 4648 §4 and §5), and the textual form of keys and certificates (RFC 7468).
///
/// The simulators have their own format code, so that they do not judge the sender by the sender's own
/// parsers.
enum Base64 {
    private static let standard = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let url = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: [UInt8]) -> String { encode(bytes, standard, padded: true) }
    /// The alphabet for URLs, without padding.
    static func encodeURL(_ bytes: [UInt8]) -> String { encode(bytes, url, padded: false) }

    private static func encode(_ bytes: [UInt8], _ digits: [UInt8], padded: Bool) -> String {
        var out: [UInt8] = []
        out.reserveCapacity((bytes.count + 2) / 3 * 4)
        var at = 0
        while at < bytes.count {
            let left = bytes.count - at
            let group = (0..<3).reduce(UInt32(0)) { $0 << 8 | ($1 < left ? UInt32(bytes[at + $1]) : 0) }
            for digit in 0..<4 {
                if digit <= left {
                    out.append(digits[Int(group >> UInt32(18 - 6 * digit)) & 63])
                } else if padded {
                    out.append(UInt8(ascii: "="))
                }
            }
            at += 3
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Reads the alphabet for URLs without padding; `nil` for anything else, stray bits included.
    static func decodeURL(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var held = 0
        for character in text {
            guard let digit = urlDigit(character) else { return nil }
            bits = bits << 6 | UInt32(digit)
            held += 6
            if held >= 8 {
                held -= 8
                out.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
            }
        }
        return bits & ((1 << UInt32(held)) - 1) == 0 ? out : nil
    }

    /// Reads the standard alphabet, padded to groups of four; `nil` for anything else, stray bits included.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        let digits = text.count - text.suffix(2).count { $0 == UInt8(ascii: "=") }
        var spelled: [UInt8] = []
        spelled.reserveCapacity(digits)
        for character in text.prefix(digits) {
            switch character {
            case UInt8(ascii: "+"): spelled.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/"): spelled.append(UInt8(ascii: "_"))
            case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
            default: spelled.append(character)
            }
        }
        return decodeURL(spelled)
    }

    private static func urlDigit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}

enum PEM {
    static func text(_ label: String, _ bytes: [UInt8]) -> String {
        var text = "-----BEGIN \(label)-----\n"
        let body = Array(Base64.encode(bytes).utf8)
        var at = 0
        while at < body.count {
            text += String(decoding: body[at..<min(at + 64, body.count)], as: UTF8.self) + "\n"
            at += 64
        }
        return text + "-----END \(label)-----\n"
    }
}
