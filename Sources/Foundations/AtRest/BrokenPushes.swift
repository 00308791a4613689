import PushModel

/// Pushes that the store has given out and that do not open, until it has been told what becomes of them.
struct BrokenPushes: Sendable {
    /// As many as some claims bring. What comes beyond stays as in memory until this process ends, and
    /// hinders nobody.
    private static let limit = 10_000

    /// Changed bytes: they are set aside.
    private(set) var aside: [StoredSettlement] = []
    /// Sealed with a key that is not held: they come again later.
    private(set) var closed: [StoredSettlement] = []

    var isEmpty: Bool { aside.isEmpty && closed.isEmpty }

    mutating func add(aside push: StoredSettlement) { if aside.count < Self.limit { aside.append(push) } }
    mutating func add(closed push: StoredSettlement) { if closed.count < Self.limit { closed.append(push) } }

    /// Takes out what the store has heard: it stands at the beginning, for others are only added.
    mutating func remove(_ told: BrokenPushes) {
        aside.removeFirst(min(told.aside.count, aside.count))
        closed.removeFirst(min(told.closed.count, closed.count))
    }

    /// How long a push waits whose key is not held: a minute, and then as long as it has been owed. So it
    /// comes a dozen times in a day, and not once a minute for as long as it is owed.
    static func wait(of age: Duration) -> Duration { min(max(.seconds(60), age), .seconds(6 * 3_600)) }
}

/// Records that were read and do not open, until the store has set them aside. Bounded like the pushes above;
/// what comes beyond is met again.
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
