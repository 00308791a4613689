import PushModel

/// JSON as PHP's `json_encode` writes it with its default flags (§4.2, §4.4): no blanks, `/` as `\/`,
/// everything above U+007F as `\uXXXX` in lower case (two of them above U+FFFF), DEL as it is.
///
/// The lengths that are counted in a plaintext, and the bytes that are signed, are those of this spelling.
struct PHPText {
    private(set) var bytes: [UInt8] = []

    init(reserving capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Text as it is, between elements of XML.
    mutating func plain(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func int(_ value: Int64) { bytes.append(contentsOf: String(value).utf8) }

    mutating func string(_ text: String) { string(text.unicodeScalars) }

    mutating func string(_ text: some Sequence<Unicode.Scalar>) {
        bytes.append(0x22)
        for scalar in text { append(scalar) }
        bytes.append(0x22)
    }

    /// A string that is ASCII without control characters: base64, hexadecimal, a word of ours.
    mutating func string(ascii text: UnsafeRawBufferPointer) {
        bytes.append(0x22)
        for byte in text { append(Unicode.Scalar(byte)) }
        bytes.append(0x22)
    }

    /// Hands the text over as a secret and wipes this buffer. Reserve enough at the start.
    mutating func takeSecret() -> Secret {
        let secret = bytes.withUnsafeBytes { Secret(copying: $0) }
        bytes.withUnsafeMutableBytes { wipe($0) }
        bytes.removeAll()
        return secret
    }

    /// How many bytes a character takes between the quotes.
    static func byteCount(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x22, 0x2F, 0x5C, 0x08, 0x09, 0x0A, 0x0C, 0x0D: 2
        case 0x20...0x7F: 1
        case 0x10000...: 12
        default: 6
        }
    }

    // MARK: parts

    private mutating func append(_ scalar: Unicode.Scalar) {
        switch scalar.value {
        case 0x22, 0x2F, 0x5C:
            bytes.append(0x5C)
            bytes.append(UInt8(scalar.value))
        case 0x08: raw("\\b")
        case 0x09: raw("\\t")
        case 0x0A: raw("\\n")
        case 0x0C: raw("\\f")
        case 0x0D: raw("\\r")
        case 0x20...0x7F: bytes.append(UInt8(scalar.value))
        default: for unit in String(scalar).utf16 { escape(unit) }
        }
    }

    private mutating func escape(_ unit: UInt16) {
        raw("\\u")
        for shift in [UInt16(12), 8, 4, 0] {
            let digit = UInt8(unit >> shift & 15)
            bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }
}
