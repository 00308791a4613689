package import PushModel
import Synchronization

extension SealedStore: LeaseRenewal {
    /// With each renewal, the store is told of broken rows that it does not know yet.
    package func renew(for span: Duration) async throws(StoreError) {
        try await owners.renew(for: span)
        await tellOfBroken()
        await tellOfBrokenRecords()
    }
}

extension SealedStore {
    /// The number of records that the store has met and that cannot be read or do not open: they do not exist
    /// for anybody until they are written again.
    package func recordsAside() async throws(StoreError) -> Int { try await records.setRecordsAside([]) }

    /// Told in one commit; the next renewal tells more.
    private static var recordsAtOnce: Int { 1_000 }

    private func tellOfBrokenRecords() async {
        let told = Set(brokenRecords.withLock { $0.seen.prefix(Self.recordsAtOnce) })
        guard !told.isEmpty else { return }
        do throws(StoreError) {
            _ = try await records.setRecordsAside(Array(told))
            brokenRecords.withLock { $0.remove(told) }
        } catch {
            journal.note("broken records not set aside", [.code: ErrorCode(error)], level: .warning)
        }
    }
}

extension SealedStore: Enrolment {
    package func enrol(
        in groups: [GroupName], for span: Duration
    ) async throws(StoreError) -> [Member] {
        try await owners.enrol(in: groups, for: span)
    }
}

extension SealedStore: Ownership {
    package func takeOver(_ lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try await owners.takeOver(Self.withAside(lanes), limit: limit)
    }

    package func letGo(besides lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try await owners.letGo(besides: Self.withAside(lanes), limit: limit)
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await owners.reclaim(limit: limit)
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int] {
        var ended = try await outbox.endCustody(before: before, limit: limit)
        for (text, count) in ended {
            guard let lane = Aside.lane(text) else { continue }
            ended[text] = nil
            ended[lane, default: 0] += count
        }
        return Self.lanes(ended)
    }

    package func load() async throws(StoreError) -> OutboxLoad {
        let load = try await owners.load()
        let aside = load.lanes.reduce(0) { $0 + (Aside.lane($1.key) == nil ? 0 : $1.value) }
        return OutboxLoad(rows: load.rows, bytes: load.bytes, lanes: Self.lanes(load.lanes), aside: aside)
    }

    /// Rows of a lane that are set aside go with it from owner to owner.
    private static func withAside(_ lanes: [LaneName]) -> [String] {
        lanes.map(\.description) + lanes.map { Aside.text($0.description) }
    }

    private static func lanes(_ counts: [String: Int]) -> [LaneName: Int] {
        var lanes: [LaneName: Int] = [:]
        for (text, count) in counts { if let lane = LaneName(text) { lanes[lane] = count } }
        return lanes
    }
}
