import PushModel

/// Subscriptions by their accounts: what a message's look-up costs without a store.
struct HeldSubscriptions: BareRegistry {
    private let rows: [RegistryName: [Record]]

    init(_ records: [Record]) {
        var rows: [RegistryName: [Record]] = [:]
        for record in records {
            guard let owner = record.owner else { continue }
            rows[RegistryName(owner), default: []].append(record)
        }
        self.rows = rows
    }

    func page(
        _ index: RecordIndex, after _: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        guard case .owner(let owner) = index else { return [] }
        return Array((rows[RegistryName(owner)] ?? []).prefix(limit))
    }
}

/// Subscriptions by their revisions, 1 to so many, each made when it is read: the process that is measured
/// keeps none of them.
struct PagedSubscriptions: BareRegistry {
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
