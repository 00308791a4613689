import PushModel

/// A key that an instance has in force.
struct KeyInForce: Sendable {
    /// How often registrations used a key.
    struct Uses: Sendable {
        /// When a relay on this store first had the key in its file; `nil`: none has begun with it.
        let since: UnixTime?
        /// Registrations in the last so many days.
        let recent: Int
        let recentDays: Int64
        /// How many days back anything is known.
        let knownDays: Int64
        /// Registrations on each day that had any, oldest first; a day is its first moment in UTC.
        let days: [(day: UnixTime, count: Int)]
    }

    /// As apps and devices write it.
    let publicKey: String
    /// `nil` where the protocol's registrations do not tell which key they used.
    var uses: Uses?
}
