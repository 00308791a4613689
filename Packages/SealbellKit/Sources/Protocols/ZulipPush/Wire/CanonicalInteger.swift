import WireFormats

/// Integers as text (§14.2): `0`, or an optional minus and digits without a leading zero, within signed 64
/// bits. A second spelling of a number would be a second name for the same account.
package enum CanonicalInteger {
    /// Reads the whole text.
    ///
    /// - Returns: `nil` for `007`, `+5`, `-0`, `5.0`, spaces, the empty text, and outside of the range.
    package static func read(_ text: UnsafeRawBufferPointer) -> Int64? {
        let isNegative = text.first == 0x2D
        let digits = UnsafeRawBufferPointer(rebasing: text.dropFirst(isNegative ? 1 : 0))
        guard let first = digits.first, (0x30...0x39).contains(first) else { return nil }
        guard first != 0x30 || (digits.count == 1 && !isNegative) else { return nil }
        var value: Int64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            let (product, over) = value.multipliedReportingOverflow(by: 10)
            // Below zero all the way, because the least number has no positive counterpart.
            let (sum, overSum) = product.subtractingReportingOverflow(Int64(digit - 0x30))
            if over || overSum { return nil }
            value = sum
        }
        if isNegative { return value }
        let (positive, over) = (0 as Int64).subtractingReportingOverflow(value)
        return over ? nil : positive
    }

    package static func read(_ text: [UInt8]) -> Int64? { withBytes(text) { read($0) } }
}
