import AdminIngress
import PushModel
import WireFormats

/// What a running relay answers: the keys in force, by instance.
struct RunningKeys {
    struct Uses: Encodable {
        struct Day: Encodable {
            /// Milliseconds of Unix time at the day's beginning.
            let day: Int64
            let registrations: Int64
        }

        let since: Int64?
        let recent: Int64
        let recentDays: Int64
        let knownDays: Int64
        let days: [Day]

        enum CodingKeys: String, CodingKey {
            case since, recent, days
            case recentDays = "recent_days"
            case knownDays = "known_days"
        }

        var words: String {
            let since = since.map { "since \(Self.day($0))" } ?? "new"
            guard let last = days.last else {
                return "in the file \(since); no registration in \(counted(knownDays, "day"))"
            }
            return "in the file \(since); \(counted(recent, "registration")) in "
                + "\(counted(recentDays, "day")), the last on "
                + Self.day(last.day)
        }

        /// `2026-06-10`
        static func day(_ milliseconds: Int64) -> Substring {
            timestamp(UnixTime(milliseconds: milliseconds)).prefix(10)
        }
    }

    struct Key {
        let instance: String
        let publicKey: String
        /// `nil` where registrations do not tell.
        let uses: Uses?
    }

    let keys: [Key]

    init(_ answer: JSONValue) {
        keys = (answer["keys"]?.array ?? []).map { key in
            let uses = key["uses"].flatMap { uses in
                uses["recent"]?.int64.map { recent in
                    Uses(
                        since: uses["since"]?.int64, recent: recent,
                        recentDays: uses["recent_days"]?.int64 ?? 0,
                        knownDays: uses["known_days"]?.int64 ?? 0,
                        days: (uses["days"]?.array ?? []).map { day in
                            Uses.Day(
                                day: day["day"]?.int64 ?? 0,
                                registrations: day["registrations"]?.int64 ?? 0)
                        })
                }
            }
            return Key(
                instance: key["instance"]?.string ?? "", publicKey: key["public_key"]?.string ?? "",
                uses: uses)
        }
    }
}
