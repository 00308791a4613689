/// Prints 128 bits as a UUID: lower case, 8-4-4-4-12 (RFC 9562 §4).
package enum UUIDDigits {
    package static let count = 36

    /// - Parameter put: takes the characters, one after the other.
    package static func write(high: UInt64, low: UInt64, _ put: (UInt8) -> Void) {
        for index in 0..<16 {
            if index == 4 || index == 6 || index == 8 || index == 10 { put(UInt8(ascii: "-")) }
            let word = index < 8 ? high : low
            let byte = UInt8(truncatingIfNeeded: word >> (8 * UInt64(7 - index % 8)))
            put(digit(byte >> 4))
            put(digit(byte & 15))
        }
    }

    package static func text(high: UInt64, low: UInt64) -> String {
        String(unsafeUninitializedCapacity: count) { out in
            var at = 0
            write(high: high, low: low) { character in
                out[at] = character
                at += 1
            }
            return at
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
