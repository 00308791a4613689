import PushModel

/// A registry that is only read, so that a measurement has nothing of a store's in it.
protocol ReadRegistry: Registry {}

extension ReadRegistry {
    var clock: DoubtedClock? { nil }
    func digest(of _: RecordKey) -> Digest16 { Digest16(high: 0, low: 0) }
    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] { keys.map { _ in nil } }
    /// Nobody writes.
    func apply(_: [Change]) async throws(StoreError) -> Applied { .refused(index: 0) }
    func purge(before _: UnixTime, limit _: Int) async throws(StoreError) -> Int { 0 }
    func forget(owner _: RecordKey, limit _: Int) async throws(StoreError) -> Int { 0 }
    func tally(_ owners: [RecordKey]) async throws(StoreError) -> [RecordTally] {
        owners.map { _ in RecordTally.none }
    }
}

/// Subscriptions by their accounts: what a message's look-up costs without a store.
struct HeldSubscriptions: ReadRegistry {
    private let rows: [Name: [Record]]

    /// Hashed in one piece, so that the look-ups stay small beside what is measured.
    private struct Name: Hashable {
        let bytes: [UInt8]

        init(_ key: RecordKey) { bytes = key.name.reveal { Array($0) } }

        func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    init(_ records: [Record]) {
        var rows: [Name: [Record]] = [:]
        for record in records {
            guard let owner = record.owner else { continue }
            rows[Name(owner), default: []].append(record)
        }
        self.rows = rows
    }

    func page(
        _ index: RecordIndex, after _: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        guard case .owner(let owner) = index else { return [] }
        return Array((rows[Name(owner)] ?? []).prefix(limit))
    }
}

/// Subscriptions by their revisions, 1 to so many, each made when it is read: the process that is measured
/// keeps none of them.
struct PagedSubscriptions: ReadRegistry {
    let space: Space
    let count: Int
    /// Of the subscription of that number, from 0.
    let body: @Sendable (Int) -> Secret

    func page(
        _ index: RecordIndex, after revision: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        guard case .space(space) = index, revision < UInt64(count) else { return [] }
        let first = Int(revision) + 1
        return (first...min(count, first + limit - 1)).map { revision in
            Record(
                key: RecordKey(space, Secret(String(revision).utf8)), touchedAt: UnixTime(seconds: 0),
                revision: UInt64(revision), body: body(revision - 1))
        }
    }
}
