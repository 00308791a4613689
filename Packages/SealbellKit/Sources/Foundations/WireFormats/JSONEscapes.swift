import PushModel

/// Escapes inside JSON strings (RFC 8259 §7).
enum JSONEscapes {
    /// Checks the escape that begins at `start` (its backslash).
    ///
    /// - Returns: the offset behind it; behind both halves of a surrogate pair.
    /// - Throws: `.malformedJSON` for an unknown or cut escape, or a lone surrogate.
    static func skip(_ bytes: UnsafeRawBufferPointer, at start: Int) throws(FormatError) -> Int {
        guard start + 1 < bytes.count else { throw FormatError(.malformedJSON) }
        switch bytes[start + 1] {
        case 0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74: return start + 2
        case 0x75:
            guard let unit = unit(bytes, at: start + 2) else { throw FormatError(.malformedJSON) }
            switch unit {
            case 0xD800..<0xDC00:
                let low = start + 6
                guard low + 1 < bytes.count, bytes[low] == 0x5C, bytes[low + 1] == 0x75,
                    let second = Self.unit(bytes, at: low + 2), (0xDC00..<0xE000).contains(second)
                else { throw FormatError(.malformedJSON) }
                return start + 12
            case 0xDC00..<0xE000: throw FormatError(.malformedJSON)
            default: return start + 6
            }
        default: throw FormatError(.malformedJSON)
        }
    }

    /// Appends the UTF-8 of a string whose escapes ``skip(_:at:)`` has checked.
    static func decode(_ raw: UnsafeRawBufferPointer, into out: inout [UInt8]) {
        var at = 0
        while at < raw.count {
            guard raw[at] == 0x5C else {
                out.append(raw[at])
                at += 1
                continue
            }
            switch raw[at + 1] {
            case 0x62: out.append(0x08)
            case 0x66: out.append(0x0C)
            case 0x6E: out.append(0x0A)
            case 0x72: out.append(0x0D)
            case 0x74: out.append(0x09)
            case 0x75:
                at += appendUnit(raw, at: at, to: &out)
                continue
            default: out.append(raw[at + 1])
            }
            at += 2
        }
    }

    /// Appends one `\uXXXX` or a pair of them. - Returns: how many bytes of text it took.
    private static func appendUnit(_ raw: UnsafeRawBufferPointer, at: Int, to out: inout [UInt8]) -> Int {
        guard let high = unit(raw, at: at + 2) else { return 2 }
        if (0xD800..<0xDC00).contains(high), let low = unit(raw, at: at + 8) {
            append(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00), to: &out)
            return 12
        }
        append(high, to: &out)
        return 6
    }

    private static func append(_ value: UInt32, to out: inout [UInt8]) {
        guard let scalar = Unicode.Scalar(value) else { return }
        out.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
    }

    /// The four hex digits at an offset.
    private static func unit(_ bytes: UnsafeRawBufferPointer, at start: Int) -> UInt32? {
        guard start + 4 <= bytes.count else { return nil }
        var value: UInt32 = 0
        for index in start..<start + 4 {
            guard let digit = Hex.value(ofDigit: bytes[index]) else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}

/// UTF-8 as Unicode 15 table 3-7 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
package enum UTF8Check {
    /// Checks the multi-byte sequence that begins at `start`. - Returns: the offset behind it.
    static func skip(_ bytes: UnsafeRawBufferPointer, at start: Int) throws(FormatError) -> Int {
        let lead = bytes[start]
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch lead {
        case 0xC2...0xDF: length = 2
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: length = 3
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: length = 4
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: throw FormatError(.invalidUTF8)
        }
        guard start + length <= bytes.count, second.contains(bytes[start + 1]) else {
            throw FormatError(.invalidUTF8)
        }
        for index in start + 2..<max(start + 2, start + length) where bytes[index] & 0xC0 != 0x80 {
            throw FormatError(.invalidUTF8)
        }
        return start + length
    }

    /// Whether all of the bytes are UTF-8.
    package static func holds(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var at = 0
        while at < bytes.count {
            if bytes[at] < 0x80 {
                at += 1
            } else if let next = try? skip(bytes, at: at) {  // The answer here is yes or no.
                at = next
            } else {
                return false
            }
        }
        return true
    }
}
