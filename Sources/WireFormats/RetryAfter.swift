package import PushModel

/// `Retry-After` (RFC 9110 §10.2.3): seconds, or an HTTP date.
package enum RetryAfter {
    /// The wait that the header asks for.
    ///
    /// - Parameter now: wall clock, for dates.
    /// - Returns: never negative, at most ``limit``; `nil` when the value is neither form.
    package static func parse(_ text: String, now: UnixTime) -> Duration? {
        let trimmed = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
        if !trimmed.isEmpty, trimmed.allSatisfy({ (0x30...0x39).contains($0) }) {
            guard let seconds = Int64(String(decoding: trimmed, as: UTF8.self)) else { return limit }
            return .seconds(min(seconds, limit.components.seconds))
        }
        guard let date = HTTPDate.parse(String(decoding: trimmed, as: UTF8.self)) else { return nil }
        return min(limit, max(.zero, date.since(now)))
    }

    /// A day: a service that asks for more is asked again then.
    package static let limit = Duration.seconds(86_400)
}

/// IMF-fixdate (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. The two obsolete forms are not read.
package enum HTTPDate {
    /// `nil` for any other form, or a day that the calendar does not have.
    package static func parse(_ text: String) -> UnixTime? {
        let bytes = Array(text.utf8)
        guard bytes.count == 29, text.hasSuffix(" GMT"), bytes[3] == 0x2C, bytes[4] == 0x20,
            bytes[7] == 0x20, bytes[11] == 0x20, bytes[16] == 0x20, bytes[19] == 0x3A, bytes[22] == 0x3A,
            let day = number(bytes[5..<7]), let year = number(bytes[12..<16]),
            let hour = number(bytes[17..<19]), let minute = number(bytes[20..<22]),
            let second = number(bytes[23..<25]),
            let month = months.firstIndex(of: String(decoding: bytes[8..<11], as: UTF8.self)),
            year >= 1970, hour < 24, minute < 60, second <= 60, day >= 1,
            day <= daysInMonth(month, year)
        else { return nil }
        var days = Int64(day - 1)
        for past in 0..<month { days += Int64(daysInMonth(past, year)) }
        let before = Int64(year - 1)
        days += before * 365 + before / 4 - before / 100 + before / 400 - 719_162
        return UnixTime(seconds: days * 86_400 + Int64(hour * 3600 + minute * 60 + second))
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
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
}
