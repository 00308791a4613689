/// Date and time as text (RFC 3339 §5.6), as a registration may have it (§14.3).
package enum RFC3339 {
    /// Digits of a fraction that are taken; they are cut off.
    private static let fractionDigits = 9

    /// Reads the whole text: `2026-06-10T13:18:08.25+02:00`. `T` and `Z` stand in either case, an offset is
    /// `Z` or `±hh:mm`, and second 60 is the first of the next minute.
    ///
    /// - Returns: Unix seconds; `nil` where anything else stands, and for a day that does not exist.
    package static func seconds(_ text: UnsafeRawBufferPointer) -> Int64? {
        var reader = Reader(text: text)
        guard let year = reader.number(4), reader.skip(0x2D), let month = reader.number(2), reader.skip(0x2D),
            let day = reader.number(2), reader.skip(letter: 0x74), let hour = reader.number(2),
            reader.skip(0x3A), let minute = reader.number(2), reader.skip(0x3A),
            let second = reader.number(2), reader.skipFraction(fractionDigits),
            let offset = reader.offset(), reader.isAtEnd, (1...12).contains(month),
            day >= 1, day <= days(ofMonth: month, year), hour <= 23, minute <= 59, second <= 60
        else { return nil }
        let whole = daysSinceEpoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
        return whole - offset
    }

    private static func days(ofMonth month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: return 30
        default: return 31
        }
    }

    /// Of the Gregorian calendar, also before it was made. A year begins in March here, so that a leap day is
    /// its last.
    private static func daysSinceEpoch(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (shifted, months) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let leapDays = floored(shifted, 4) - floored(shifted, 100) + floored(shifted, 400)
        // 719,468 days lie between the first of March of year 0 and 1970.
        return 365 * shifted + leapDays + (153 * months + 2) / 5 + day - 1 - 719_468
    }

    private static func floored(_ value: Int64, _ divisor: Int64) -> Int64 {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }

    private struct Reader {
        let text: UnsafeRawBufferPointer
        var position = 0

        var isAtEnd: Bool { position == text.count }
        private var next: UInt8? { position < text.count ? text[position] : nil }

        mutating func skip(_ byte: UInt8) -> Bool {
            guard next == byte else { return false }
            position += 1
            return true
        }

        /// - Parameter letter: in lower case; it is taken in either.
        mutating func skip(letter: UInt8) -> Bool {
            guard let next, next == letter || next == letter - 0x20 else { return false }
            position += 1
            return true
        }

        mutating func number(_ digits: Int) -> Int64? {
            var value: Int64 = 0
            for _ in 0..<digits {
                guard let next, (0x30...0x39).contains(next) else { return nil }
                value = value * 10 + Int64(next - 0x30)
                position += 1
            }
            return value
        }

        /// Passes over a fraction, if there is one; false for one without digits, or with too many.
        mutating func skipFraction(_ most: Int) -> Bool {
            guard skip(0x2E) else { return true }
            let start = position
            while let next, (0x30...0x39).contains(next) { position += 1 }
            return (1...most).contains(position - start)
        }

        /// Seconds that the local time is ahead of UTC.
        mutating func offset() -> Int64? {
            if skip(letter: 0x7A) { return 0 }
            let isBehind = next == 0x2D
            guard isBehind || next == 0x2B else { return nil }
            position += 1
            guard let hours = number(2), skip(0x3A), let minutes = number(2), hours <= 23, minutes <= 59
            else { return nil }
            return (hours * 3_600 + minutes * 60) * (isBehind ? -1 : 1)
        }
    }
}
