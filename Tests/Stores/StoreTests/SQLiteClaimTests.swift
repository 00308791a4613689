import GRDB
import PushModel
import PushTesting
@testable import SQLiteStore
import Testing

@Suite("Claims from a large outbox", .timeLimit(.minutes(30)))
struct SQLiteClaimTests {
    private let clock = ManualClock()
    private let folder: TemporaryStore

    init() throws { folder = try TemporaryStore() }

    private func open(_ limits: SQLiteLimits = SQLiteLimits()) throws -> SQLiteStore {
        try SQLiteStore(
            path: folder.path, owner: OwnerID(Digest16(high: 1, low: 1)), limits: limits,
            world: clock.world(seed: 1))
    }

    private func outbox(_ limits: SQLiteLimits = SQLiteLimits()) throws -> LargeOutbox {
        LargeOutbox(store: try open(limits), clock: clock)
    }

    @Test("A push has no column of the one that was written before it, in one commit and in the next")
    func absent() async throws {
        let (outbox, now) = (try outbox(), clock.now)
        func push(_ number: UInt64, _ digest: Digest16?) -> StoredPush {
            StoredPush(
                row: 0, id: PushID(Digest16(high: 5, low: number)), lane: LargeOutbox.lane,
                pushClass: .normal, origin: Digest16(high: number, low: 1), record: digest, touchedAt: now,
                address: digest, notBefore: now, custodyEnds: now + .seconds(86_400), attempt: 0, epoch: 1,
                parked: true, mark: digest, sealed: [1, 2, 3])
        }
        let digests: [Digest16?] = [Digest16(high: 8, low: 1), nil, Digest16(high: 8, low: 2), nil]
        let pushes = digests.enumerated().map { push(UInt64($0), $1) }
        _ = try await outbox.store.accept(Array(pushes[..<3]), changes: [], now: now)
        _ = try await outbox.store.accept(Array(pushes[3...]), changes: [], now: now)
        let claimed = try await outbox.claim(10)
        #expect(claimed.count == 4)
        for push in claimed {
            let digest = digests[Int(push.id.value.low)]
            #expect(push.record == digest && push.mark == digest && push.address == digest)
        }
    }

    @Test("However small the claims, they take turns over origins")
    func tiny() async throws { try await outbox().expectTurns() }

    @Test("With one origin owing a hundred thousand, a claim serves the others whole")
    func noisy() async throws { try await outbox().expectOthers(beside: 100_000) }

    @Test("Origins whose pushes are all in back-off keep nobody else's in the store")
    func backoff() async throws {
        var limits = SQLiteLimits()
        limits.originsSeenPerClaim = 100
        limits.originsPerClaim = 10
        try await outbox(limits).expectBackoff(within: 12, together: true)
    }

    @Test("More origins than one claim serves all have their turn, each push once")
    func manyOrigins() async throws {
        var limits = SQLiteLimits()
        limits.originsPerClaim = 16
        try await outbox(limits).expectEach()
    }

    @Test(
        "No question that is asked of a large outbox walks over it or sorts it",
        arguments: [
            SQLiteWriter.nextOrigin, SQLiteWriter.dueOfOrigin, SQLiteWriter.earliestOfLane,
            SQLiteWriter.endedCustody, SQLiteWriter.ofOthers
        ])
    func plans(_ question: String) async throws {
        let store = try open()
        try await LargeOutbox(store: store, clock: clock).park(10, of: 0..<50)
        try store.close()
        let plan = try await Self.plan(question, folder)
        #expect(!plan.isEmpty)
        for step in plan {
            #expect(step.hasPrefix("SEARCH outbox USING "), "\(plan)")
            #expect(
                step.contains("INDEX parked_by_") || step.contains("INTEGER PRIMARY KEY (rowid>"), "\(plan)")
        }
    }

    @Test("Records are counted in an index alone; only where their bytes are asked for too, they are read")
    func counting() async throws {
        try open().close()
        let counted = try await Self.plan(SQLiteRecords.tally(weighing: false), folder)
        #expect(
            counted.count == 1 && counted[0].contains("USING COVERING INDEX records_by_owner"), "\(counted)")
        let weighed = try await Self.plan(SQLiteRecords.tally(weighing: true), folder)
        #expect(weighed.count == 1 && weighed[0].contains("USING INDEX records_by_owner"), "\(weighed)")
    }

    private static func plan(_ question: String, _ folder: TemporaryStore) async throws -> [String] {
        let database = try DatabaseQueue(path: folder.path)
        let values = StatementArguments(Array(repeating: 1, count: question.count { $0 == "?" }))
        return try await database.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + question, arguments: values)
                .map { $0["detail"] as String }
        }
    }
}
