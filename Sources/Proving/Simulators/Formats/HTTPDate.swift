import PushModel

/// IMF-fixdate (RFC 9110 §5.6.7), which `Retry-After` may contain.
enum HTTPDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    ]

    static func text(_ time: UnixTime) -> String {
        let date = CivilDate(unixSeconds: time.seconds)
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : String(number) }
        // 1970-01-01 was a Thursday.
        let weekday = days[Int(time.seconds / 86_400 % 7)]
        return "\(weekday), \(two(date.day)) \(months[Int(date.month) - 1]) \(date.year) "
            + "\(two(date.hour)):\(two(date.minute)):\(two(date.second)) GMT"
    }
}

/// A moment in the proleptic Gregorian calendar, UTC; from 1970 on.
struct CivilDate: Equatable {
    let year, month, day, hour, minute, second: Int64

    init(unixSeconds: Int64) {
        let days = unixSeconds / 86_400
        let ofDay = unixSeconds % 86_400
        // The era calculation counts from 1 March of year 0, so that a leap day ends a year.
        let shifted = days + 719_468
        let era = shifted / 146_097
        let ofEra = shifted % 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * ofYear + 2) / 153
        day = ofYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        hour = ofDay / 3600
        minute = ofDay / 60 % 60
        second = ofDay % 60
    }
}
