/// Prints 128 bits as a UUID: lower case, 8-4-4-4-12 (RFC 9562 §4).
package enum UUIDDigits {
    package static let count = 36

    /// - Parameter out: room for ``count`` characters, and no more.
    package static func write(high: UInt64, low: UInt64, into out: UnsafeMutableRawBufferPointer) {
        precondition(out.count == count)
        let dash = UInt8(ascii: "-")
        let middle = digits(UInt32(truncatingIfNeeded: high))
        let clock = digits(UInt32(truncatingIfNeeded: low >> 32))
        put(digits(UInt32(truncatingIfNeeded: high >> 32)), at: 0, out)
        out[8] = dash
        put(UInt32(truncatingIfNeeded: middle >> 32), at: 9, out)
        out[13] = dash
        put(UInt32(truncatingIfNeeded: middle), at: 14, out)
        out[18] = dash
        put(UInt32(truncatingIfNeeded: clock >> 32), at: 19, out)
        out[23] = dash
        put(UInt32(truncatingIfNeeded: clock), at: 24, out)
        put(digits(UInt32(truncatingIfNeeded: low)), at: 28, out)
    }

    package static func text(high: UInt64, low: UInt64) -> String {
        String(unsafeUninitializedCapacity: count) { out in
            let raw = UnsafeMutableRawBufferPointer(out)
            write(high: high, low: low, into: UnsafeMutableRawBufferPointer(rebasing: raw[..<count]))
            return count
        }
    }

    private static func put(_ eight: UInt64, at start: Int, _ out: UnsafeMutableRawBufferPointer) {
        out.storeBytes(of: eight.bigEndian, toByteOffset: start, as: UInt64.self)
    }

    private static func put(_ four: UInt32, at start: Int, _ out: UnsafeMutableRawBufferPointer) {
        out.storeBytes(of: four.bigEndian, toByteOffset: start, as: UInt32.self)
    }

    /// Eight digits, the first of them in the highest byte: all at once, for each request holds a push's id.
    private static func digits(_ value: UInt32) -> UInt64 {
        // Each half byte into a byte of its own.
        var each = UInt64(value)
        each = each << 16 & 0x0000_FFFF_0000_0000 | each & 0x0000_0000_0000_FFFF
        each = each << 8 & 0x00FF_0000_00FF_0000 | each & 0x0000_00FF_0000_00FF
        each = each << 4 & 0x0F00_0F00_0F00_0F00 | each & 0x000F_000F_000F_000F
        // 1 where it is ten or more: those begin at "a", which is 39 behind what would follow "9".
        let isLetter = (each + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return each + 0x3030_3030_3030_3030 + isLetter * 39
    }
}
