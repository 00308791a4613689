package import PushModel

/// `Retry-After` (RFC 9110 §10.2.3): seconds, or an HTTP date.
package enum RetryAfter {
    /// The wait that the header asks for.
    ///
    /// - Parameter now: wall clock, for dates.
    /// - Returns: never negative, at most ``limit``; `nil` when the value is neither form.
    package static func parse(_ text: String, now: UnixTime) -> Duration? {
        var value = text[...]
        while let first = value.utf8.first, first == 0x20 || first == 0x09 { value = value.dropFirst() }
        while let last = value.utf8.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            guard let seconds = Int64(value) else { return limit }
            return .seconds(min(seconds, limit.components.seconds))
        }
        guard let date = HTTPDate.parse(String(value), now: now) else { return nil }
        return min(limit, max(.zero, date.since(now)))
    }

    /// A day: a service that asks for more is asked again then.
    package static let limit = Duration.seconds(86_400)
}

/// The three forms of a date that a recipient must read (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`,
/// and the obsolete `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
package enum HTTPDate {
    /// `nil` for any other form, a day that the calendar does not have, or a day of the week that is none;
    /// whether it was that day of the week is not checked.
    ///
    /// - Parameter now: a year of two digits that seems more than 50 years ahead is one of the past.
    package static func parse(_ text: String, now: UnixTime) -> UnixTime? {
        let words = text.utf8.split(separator: 0x20, omittingEmptySubsequences: false).map { Array($0) }
        switch words.count {
        case 6:
            // Sun, 06 Nov 1994 08:49:37 GMT
            guard words[0].last == 0x2C, isDay(words[0].dropLast(), shortDays), words[1].count == 2,
                let day = number(words[1]), words[3].count == 4, let year = number(words[3]),
                isZone(words[5])
            else {
                return asctimeOfOneDigit(words)
            }
            return moment(year, words[2], day, words[4])
        case 4:
            // Sunday, 06-Nov-94 08:49:37 GMT
            let parts = words[1].split(separator: 0x2D, omittingEmptySubsequences: false).map { Array($0) }
            guard words[0].last == 0x2C, isDay(words[0].dropLast(), longDays), parts.count == 3,
                parts[0].count == 2, let day = number(parts[0]), parts[2].count == 2,
                let short = number(parts[2]), isZone(words[3])
            else { return nil }
            return century(of: short, now: now) { moment($0, parts[1], day, words[2]) }
        case 5:
            // Sun Nov 16 08:49:37 1994
            guard isDay(words[0][...], shortDays), words[2].count == 2, let day = number(words[2]),
                words[4].count == 4, let year = number(words[4])
            else { return nil }
            return moment(year, words[1], day, words[3])
        default: return nil
        }
    }

    /// `Sun Nov  6 08:49:37 1994`: below ten a blank stands for the first digit.
    private static func asctimeOfOneDigit(_ words: [[UInt8]]) -> UnixTime? {
        guard isDay(words[0][...], shortDays), words[2].isEmpty, words[3].count == 1,
            let day = number(words[3]), words[5].count == 4, let year = number(words[5])
        else { return nil }
        return moment(year, words[1], day, words[4])
    }

    private static func century(
        of short: Int, now: UnixTime, _ moment: (Int) -> UnixTime?
    ) -> UnixTime? {
        // Far enough for every clock that runs; the last of them that is not too far ahead is meant.
        for century in stride(from: 2100, through: 1900, by: -100) {
            if let found = moment(century + short), found.since(now) <= .seconds(fiftyYearsSeconds) {
                return found
            }
        }
        return nil
    }

    private static let fiftyYearsSeconds: Int64 = 50 * 31_556_952

    private static func moment(_ year: Int, _ month: [UInt8], _ day: Int, _ clock: [UInt8]) -> UnixTime? {
        guard clock.count == 8, clock[2] == 0x3A, clock[5] == 0x3A, let hour = number(clock[0..<2]),
            let minute = number(clock[3..<5]), let second = number(clock[6..<8]),
            let month = months.firstIndex(of: String(decoding: month, as: UTF8.self)),
            year >= 1970, hour < 24, minute < 60, second <= 60, day >= 1, day <= daysInMonth(month, year)
        else { return nil }
        var days = Int64(day - 1)
        for past in 0..<month { days += Int64(daysInMonth(past, year)) }
        let before = Int64(year - 1)
        days += before * 365 + before / 4 - before / 100 + before / 400 - 719_162
        return UnixTime(seconds: days * 86_400 + Int64(hour * 3600 + minute * 60 + second))
    }

    private static func isZone(_ word: [UInt8]) -> Bool { word.elementsEqual("GMT".utf8) }

    private static func isDay(_ word: ArraySlice<UInt8>, _ days: [String]) -> Bool {
        days.contains(String(decoding: word, as: UTF8.self))
    }

    private static func number(_ digits: some Collection<UInt8>) -> Int? {
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func daysInMonth(_ month: Int, _ year: Int) -> Int {
        let leap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        return month == 1 ? (leap ? 29 : 28) : [3, 5, 8, 10].contains(month) ? 30 : 31
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    ]
    private static let longDays = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"
    ]
    private static let shortDays = longDays.map { String($0.prefix(3)) }
}
