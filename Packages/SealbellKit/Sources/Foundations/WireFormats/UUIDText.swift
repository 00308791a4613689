import PushModel

/// A UUID (RFC 9562) in its canonical lower-case text form, 8-4-4-4-12.
package struct UUIDText: Sendable, Hashable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the canonical form; `nil` for upper case, braces, or anything else.
    package init?(_ text: UnsafeRawBufferPointer) {
        guard !text.contains(where: { (0x41...0x46).contains($0) }) else { return nil }
        self.init(anyCase: text)
    }

    /// Reads 8-4-4-4-12 digits of either case, which is how RFC 9562 §4 wants them read; `nil` for braces, a
    /// missing hyphen, or anything else.
    package init?(anyCase text: UnsafeRawBufferPointer) {
        guard text.count == 36, text[8] == 0x2D, text[13] == 0x2D, text[18] == 0x2D, text[23] == 0x2D else {
            return nil
        }
        guard let first = Hex.value(ofEight: Self.eight(text, 0, 4)),
            let second = Hex.value(ofEight: Self.eight(text, 9, 14)),
            let third = Hex.value(ofEight: Self.eight(text, 19, 24)),
            let fourth = Hex.value(ofEight: Self.eight(text, 28, 32))
        else { return nil }
        high = UInt64(first) << 32 | UInt64(second)
        low = UInt64(third) << 32 | UInt64(fourth)
    }

    /// Two times four digits of the text, the first in the highest byte.
    private static func eight(_ text: UnsafeRawBufferPointer, _ left: Int, _ right: Int) -> UInt64 {
        precondition(left + 4 <= text.count && right + 4 <= text.count)
        let (left, right) = (
            text.loadUnaligned(fromByteOffset: left, as: UInt32.self),
            text.loadUnaligned(fromByteOffset: right, as: UInt32.self)
        )
        return UInt64(UInt32(bigEndian: left)) << 32 | UInt64(UInt32(bigEndian: right))
    }

    package init?(_ text: String) {
        guard let value = withBytes(Array(text.utf8), { UUIDText($0) }) else { return nil }
        self = value
    }

    /// Exactly 16 bytes, else `nil`.
    package init?(bytes raw: UnsafeRawBufferPointer) {
        guard raw.count == 16 else { return nil }
        high = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// Exactly 16 bytes, else `nil`.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for (index, byte) in bytes.enumerated() {
            if index < 8 {
                words.0 = words.0 << 8 | UInt64(byte)
            } else {
                words.1 = words.1 << 8 | UInt64(byte)
            }
        }
        (high, low) = words
    }

    /// A version 4 UUID from 128 random bits (RFC 9562 §5.4).
    package init(version4From first: UInt64, _ second: UInt64) {
        high = first & ~0xF000 | 0x4000
        low = second & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    }

    /// Version 4 and the variant of RFC 9562 §4.1.
    package var isVersion4: Bool { high >> 12 & 15 == 4 && low >> 62 == 2 }

    /// Sixteen bytes, big-endian.
    package var bytes: [UInt8] { withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) } }

    package var text: String { UUIDDigits.text(high: high, low: low) }
}
