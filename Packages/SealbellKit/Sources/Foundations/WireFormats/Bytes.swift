import PushModel

/// Lends the bytes of an array without a copy, keeping the thrown type.
@inlinable
package func withBytes<Result, Failure: Error>(
    _ array: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
    try array.withUnsafeBufferPointer { (buffer) throws(Failure) -> Result in
        try body(UnsafeRawBufferPointer(buffer))
    }
}

/// Bytes of which a JSON string needs to look at each.
@usableFromInline
package enum PlainText {
    /// How many bytes from an offset on are visible ASCII but neither a quote nor a backslash: eight are
    /// looked at in one step, and fewer than eight at the end of the bytes one by one.
    @inlinable
    package static func run(_ raw: UnsafeRawBufferPointer, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        var at = start
        while at + 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            let (quote, backslash) = (word ^ (ones &* 0x22), word ^ (ones &* 0x5C))
            // A byte's high bit ends up set where the byte is below 0x20, equal, or not ASCII. A borrow may
            // set those of bytes behind such a one too, but none before it: the lowest is right.
            let found = (word &- ones &* 0x20) | (quote &- ones) | (backslash &- ones) | word
            let marks = found & highs
            if marks != 0 { return at + marks.trailingZeroBitCount / 8 - start }
            at += 8
        }
        while at < raw.count, isPlain(raw[at]) { at += 1 }
        return at - start
    }

    @inlinable
    package static func isPlain(_ byte: UInt8) -> Bool {
        (0x20..<0x80).contains(byte) && byte != 0x22 && byte != 0x5C
    }
}

/// Whether the bytes are exactly this text.
@inlinable
package func bytes(_ raw: UnsafeRawBufferPointer, equal text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard raw.count == count else { return false }
    let other = UnsafeRawBufferPointer(start: text.utf8Start, count: count)
    var at = 0
    while at + 8 <= count {
        let (own, its) = (
            raw.loadUnaligned(fromByteOffset: at, as: UInt64.self),
            other.loadUnaligned(fromByteOffset: at, as: UInt64.self)
        )
        if own != its { return false }
        at += 8
    }
    while at < count {
        if raw[at] != other[at] { return false }
        at += 1
    }
    return true
}

/// Hexadecimal, two digits for each byte.
@usableFromInline
package enum Hex {
    /// Lower-case digits.
    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(unsafeUninitializedCapacity: bytes.count * 2) { out in
            var at = 0
            for byte in bytes {
                out[at] = digits[Int(byte >> 4)]
                out[at + 1] = digits[Int(byte & 15)]
                at += 2
            }
            return at
        }
    }

    /// Reads digits of either case.
    ///
    /// - Throws: `.malformedHex` for an odd number of digits or any other character.
    package static func decode(_ text: some Collection<UInt8>) throws(FormatError) -> [UInt8] {
        guard text.count.isMultiple(of: 2) else { throw FormatError(.malformedHex) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var pending: UInt8?
        for character in text {
            guard let digit = value(ofDigit: character) else { throw FormatError(.malformedHex) }
            if let first = pending {
                bytes.append(first << 4 | digit)
                pending = nil
            } else {
                pending = digit
            }
        }
        return bytes
    }

    /// The same from raw memory, where each field of each event is read.
    package static func decode(_ text: UnsafeRawBufferPointer) throws(FormatError) -> [UInt8] {
        guard text.count.isMultiple(of: 2) else { throw FormatError(.malformedHex) }
        var isHex = true
        let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 2) { out, count in
            for at in 0..<text.count / 2 {
                guard let high = value(ofDigit: text[2 * at]), let low = value(ofDigit: text[2 * at + 1])
                else {
                    isHex = false
                    return
                }
                out[at] = high << 4 | low
                count = at + 1
            }
        }
        guard isHex else { throw FormatError(.malformedHex) }
        return bytes
    }

    /// What eight digits of either case say, the first in the highest byte; `nil` when one of them is none.
    package static func value(ofEight characters: UInt64) -> UInt32? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        // All bytes at once. Of a digit the low half is the value, and of a letter that and nine.
        let letters = characters >> 6 & ones
        let values = (characters & (ones &* 0x0F)) &+ letters &* 9
        // Written again, in small letters, they must be what they were read from.
        let aboveNine = (values &+ ones &* 6) >> 4 & ones
        let written = values &+ ones &* 0x30 &+ aboveNine &* 0x27
        guard values & (ones &* 0xF0) == 0, written == characters | letters &* 0x20 else { return nil }
        let bytes = (values | values >> 4) & 0x00FF_00FF_00FF_00FF
        let pairs = (bytes | bytes >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: pairs | pairs >> 16)
    }

    /// 0 to 15, or `nil` for a character that is no hex digit.
    @inlinable
    package static func value(ofDigit character: UInt8) -> UInt8? {
        // By selections instead of branches: whether a letter or a figure comes next cannot be foreseen.
        let (figure, letter) = (character &- 0x30, (character | 0x20) &- 0x61)
        let value = letter < 6 ? letter &+ 10 : figure < 10 ? figure : .max
        return value == .max ? nil : value
    }
}
