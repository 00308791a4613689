import WireFormats

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// Parts of a large form, read where they stand.
enum FormText {
    /// Where that byte next is, or the end.
    static func end(of byte: UInt8, in text: UnsafeRawBufferPointer, from start: Int) -> Int {
        guard start < text.count, let base = text.baseAddress,
            let found = memchr(base + start, Int32(byte), text.count - start)
        else { return text.count }
        return UnsafeRawPointer(found) - base
    }

    /// Decodes `application/x-www-form-urlencoded`: `+` is a blank.
    ///
    /// - Returns: how many bytes; `nil` where an escape is broken, or `out` too small.
    static func decode(
        _ text: Slice<UnsafeRawBufferPointer>, into out: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let text = UnsafeRawBufferPointer(rebasing: text)
        var (at, count) = (0, 0)
        while at < text.count {
            // Eight at a time, up to the first that does not stand for itself. What is copied behind it is
            // written over.
            if at + 8 <= text.count, count + 8 <= out.count {
                let word = text.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                out.storeBytes(of: word, toByteOffset: count, as: UInt64.self)
                let plain = plainBytes(UInt64(littleEndian: word))
                at += plain
                count += plain
                if plain == 8 { continue }
            }
            guard count < out.count else { return nil }
            switch text[at] {
            case 0x2B: out[count] = 0x20
            case 0x25:
                guard at + 2 < text.count, let high = Hex.value(ofDigit: text[at + 1]),
                    let low = Hex.value(ofDigit: text[at + 2])
                else { return nil }
                out[count] = high << 4 | low
                at += 2
            case let byte: out[count] = byte
            }
            at += 1
            count += 1
        }
        return count
    }

    /// How many of the word's first bytes are neither `%` nor `+`.
    private static func plainBytes(_ word: UInt64) -> Int {
        // Above the lowest mark there may be a wrong one.
        (marks(of: 0x25, in: word) | marks(of: 0x2B, in: word)).trailingZeroBitCount / 8
    }

    /// The highest bit of each byte that is that one; the lowest of them is right.
    private static func marks(of byte: UInt8, in word: UInt64) -> UInt64 {
        let differing = word ^ (0x0101_0101_0101_0101 &* UInt64(byte))
        return (differing &- 0x0101_0101_0101_0101) & ~differing & 0x8080_8080_8080_8080
    }
}
