import PushModel

/// Pushes that the store has given out and that do not open, until the store has recorded what becomes of
/// them.
struct BrokenPushes: Sendable {
    /// As many as a few claims bring. Further ones stay marked as in memory until this process ends, which
    /// delays no other push.
    private static let limit = 10_000

    /// Changed bytes: they are set aside.
    private(set) var aside: [StoredSettlement] = []
    /// Sealed with a key that we do not hold: they come again later.
    private(set) var closed: [StoredSettlement] = []

    var isEmpty: Bool { aside.isEmpty && closed.isEmpty }

    mutating func add(aside push: StoredSettlement) { if aside.count < Self.limit { aside.append(push) } }
    mutating func add(closed push: StoredSettlement) { if closed.count < Self.limit { closed.append(push) } }

    /// Removes what the store has recorded, which is at the beginning, because others are only appended.
    mutating func remove(_ told: BrokenPushes) {
        aside.removeFirst(min(told.aside.count, aside.count))
        closed.removeFirst(min(told.closed.count, closed.count))
    }

    /// How long a push waits whose key we do not hold: a minute, and then as long as it has been owed. So it
    /// comes a dozen times in a day, and not every minute.
    static func wait(of age: Duration) -> Duration { min(max(.seconds(60), age), .seconds(6 * 3_600)) }
}

/// Records that were read and do not open, until the store has set them aside. Bounded like the pushes above;
/// further ones are met again later.
struct BrokenRecords: Sendable {
    private static let limit = 10_000
    private(set) var seen: Set<SeenRecord> = []

    /// False when it was met before.
    mutating func add(_ record: StoredRecord) -> Bool {
        guard seen.count < Self.limit else { return false }
        return seen.insert(
            SeenRecord(key: record.key, revision: Int64(clamping: record.revision))
        ).inserted
    }

    mutating func remove(_ told: Set<SeenRecord>) { seen.subtract(told) }
}
