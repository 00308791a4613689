import PushModel

extension Secret {
    /// Lower-case hex digits, two for each byte.
    var hexDigits: Secret {
        Secret(count: 2 * count) { room in reveal { HexDigits.write($0, into: room) } }
    }
}

enum HexDigits {
    /// Writes two lower-case digits for each byte.
    static func write(_ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
        for at in 0..<bytes.count {
            room[2 * at] = digit(bytes[at] >> 4)
            room[2 * at + 1] = digit(bytes[at] & 15)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}
