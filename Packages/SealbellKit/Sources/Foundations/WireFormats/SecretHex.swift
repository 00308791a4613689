package import PushModel

// Keys and tokens in hexadecimal: neither the digits nor the bytes pass through memory that is not wiped.

extension Hex {
    /// Reads digits of either case.
    ///
    /// - Returns: `nil` for an odd number of digits or any other character.
    package static func secret(_ text: UnsafeRawBufferPointer) -> Secret? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var isHex = true
        let bytes = Secret(count: text.count / 2) { out in
            for at in 0..<out.count {
                guard let high = value(ofDigit: text[2 * at]), let low = value(ofDigit: text[2 * at + 1])
                else {
                    isHex = false
                    return
                }
                out[at] = high << 4 | low
            }
        }
        return isHex ? bytes : nil
    }

    /// Writes two lower-case digits for each byte.
    package static func write(_ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
        for at in 0..<bytes.count {
            room[2 * at] = digit(bytes[at] >> 4)
            room[2 * at + 1] = digit(bytes[at] & 15)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}

extension Secret {
    /// Lower-case hex digits, two for each byte.
    package var hexDigits: Secret {
        Secret(count: 2 * count) { room in reveal { Hex.write($0, into: room) } }
    }

    /// The same with a line break behind them, as a key file's text.
    package var hexLine: Secret {
        Secret(count: 2 * count + 1) { room in
            reveal { Hex.write($0, into: room) }
            room[2 * count] = 0x0A
        }
    }

    /// Bytes of hex digits; `nil` for any other text.
    package var fromHex: Secret? { reveal { Hex.secret($0) } }
}
