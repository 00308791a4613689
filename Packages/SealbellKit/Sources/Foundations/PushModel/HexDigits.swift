/// Looks at hexadecimal digits eight at a time: a device token of Apple's is 64 of them, and each push has it
/// looked at twice.
package enum HexDigits {
    /// Whether every byte is one, in capitals or small letters.
    package static func areAll(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var at = 0
        while bytes.count - at >= 8 {
            let word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            guard word & tops == 0 else { return false }
            let digits = marked(word, from: 0x30, to: 0x39)
            // In small letters.
            let letters = marked(word | ones * 0x20, from: 0x61, to: 0x66)
            guard (digits | letters) & tops == tops else { return false }
            at += 8
        }
        return bytes[at...].allSatisfy { $0 &- 0x30 <= 9 || ($0 | 0x20) &- 0x61 <= 5 }
    }

    /// False when no byte is one of `A` to `F`. May be true without one: of bytes from 0x80 on the lower bits
    /// are looked at.
    package static func mayHaveCapitals(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var at = 0
        while bytes.count - at >= 8 {
            let word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self) & ~tops
            guard marked(word, from: 0x41, to: 0x46) & tops == 0 else { return true }
            at += 8
        }
        return bytes[at...].contains { $0 &- 0x41 <= 5 }
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    /// The top bit of each byte that is within the range; all other bits have no meaning.
    ///
    /// - Parameter word: its bytes are below 0x80, so that no sum runs over into the next one.
    private static func marked(_ word: UInt64, from low: UInt64, to high: UInt64) -> UInt64 {
        (word + ones * (0x80 - low)) & ~(word + ones * (0x7F - high))
    }
}
