import GRDB
import PushModel
import PushTesting
@testable import SQLiteStore
import Testing

@Suite("Claims from a large outbox", .timeLimit(.minutes(30)))
struct SQLiteClaimTests {
    private static let lane = "acme-chat/apns/production"
    private let clock = ManualClock()

    private func open(_ folder: TemporaryStore, _ limits: SQLiteLimits = SQLiteLimits()) throws -> SQLiteStore
    {
        try SQLiteStore(
            path: folder.path, owner: OwnerID(Digest16(high: 1, low: 1)), limits: limits,
            world: clock.world(seed: 1))
    }

    /// Parked pushes, `count` of each origin in the range; due after `later`.
    private func park(
        _ count: Int, of origins: Range<Int>, in store: SQLiteStore, later: Duration = .zero,
        _ level: PushClass = .normal
    ) async throws {
        let now = clock.now
        let pushes = origins.flatMap { origin in
            (0..<count).map { number in
                StoredPush(
                    row: 0, id: PushID(Digest16(high: UInt64(origin), low: UInt64(number))), lane: Self.lane,
                    pushClass: level, origin: Digest16(high: UInt64(origin), low: 1), record: nil,
                    touchedAt: now, notBefore: now + later, custodyEnds: now + .seconds(86_400), attempt: 0,
                    epoch: 1, parked: true, mark: nil, sealed: [1, 2, 3])
            }
        }
        for start in stride(from: 0, to: pushes.count, by: 5_000) {
            let part = Array(pushes[start..<min(start + 5_000, pushes.count)])
            _ = try await store.accept(part, changes: [], now: now)
        }
    }

    private func claim(_ limit: Int, _ store: SQLiteStore) async throws -> [StoredPush] {
        try await store.claim(Self.lane, due: clock.now, limit: limit)
    }

    @Test("A push has no column of the one that was written before it, in one commit and in the next")
    func absent() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let store = try open(folder)
        let now = clock.now
        func push(_ number: UInt64, _ digest: Digest16?) -> StoredPush {
            StoredPush(
                row: 0, id: PushID(Digest16(high: 5, low: number)), lane: Self.lane, pushClass: .normal,
                origin: Digest16(high: number, low: 1), record: digest, touchedAt: now, address: digest,
                notBefore: now, custodyEnds: now + .seconds(86_400), attempt: 0, epoch: 1, parked: true,
                mark: digest, sealed: [1, 2, 3])
        }
        let digests: [Digest16?] = [Digest16(high: 8, low: 1), nil, Digest16(high: 8, low: 2), nil]
        let pushes = digests.enumerated().map { push(UInt64($0), $1) }
        _ = try await store.accept(Array(pushes[..<3]), changes: [], now: now)
        _ = try await store.accept(Array(pushes[3...]), changes: [], now: now)
        let claimed = try await claim(10, store)
        #expect(claimed.count == 4)
        for push in claimed {
            let digest = digests[Int(push.id.value.low)]
            #expect(push.record == digest && push.mark == digest && push.address == digest)
        }
    }

    @Test("However small the claims, they take turns over origins")
    func tiny() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let store = try open(folder)
        try await park(300, of: 0..<1, in: store)
        try await park(4, of: 1..<5, in: store)
        var served: [UInt64] = []
        for _ in 0..<20 { served += try await claim(1, store).map(\.origin.high) }
        #expect(served == Array(repeating: [0, 1, 2, 3, 4], count: 4).flatMap(\.self))
        #expect(try await claim(3, store).map(\.origin.high) == [0, 0, 0])
    }

    @Test("With one origin owing a hundred thousand, a claim serves the others whole")
    func noisy() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let store = try open(folder)
        try await park(100_000, of: 0..<1, in: store)
        try await park(3, of: 1..<4, in: store)
        let first = try await claim(1_000, store)
        #expect(first.count == 1_000)
        let counts = Dictionary(grouping: first, by: \.origin.high).mapValues(\.count)
        #expect(counts == [0: 991, 1: 3, 2: 3, 3: 3])
        // They alternate from the first on.
        #expect(Set(first.prefix(4).map(\.origin.high)) == [0, 1, 2, 3])
    }

    @Test("Origins whose pushes are all in back-off keep nobody else's in the store")
    func backoff() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        var limits = SQLiteLimits()
        limits.originsSeenPerClaim = 100
        limits.originsPerClaim = 10
        let store = try open(folder, limits)
        try await park(1, of: 0..<1_000, in: store, later: .seconds(60))
        try await park(2, of: 999..<1_000, in: store)
        var claimed: [StoredPush] = []
        var rounds = 0
        while claimed.isEmpty, rounds < 12 {
            claimed = try await claim(50, store)
            rounds += 1
        }
        #expect(claimed.map(\.origin.high) == [999, 999])
        clock.advance(by: .seconds(60))
        var rest = 0
        for _ in 0..<100 { rest += try await claim(50, store).count }
        #expect(rest == 1_000)
    }

    @Test("More origins than one claim serves all have their turn, each push once")
    func manyOrigins() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        var limits = SQLiteLimits()
        limits.originsPerClaim = 16
        let store = try open(folder, limits)
        try await park(2, of: 0..<200, in: store)
        var ids: [PushID] = []
        for _ in 0..<25 { ids += try await claim(16, store).map(\.id) }
        #expect(Set(ids).count == 400)
        // Nobody is served a second time before everybody was served once.
        #expect(Set(ids.prefix(200).map(\.value.high)).count == 200)
    }

    @Test(
        "No question that is asked of a large outbox walks over it or sorts it",
        arguments: [
            SQLiteWriter.nextOrigin, SQLiteWriter.dueOfOrigin, SQLiteWriter.earliestOfLane,
            SQLiteWriter.endedCustody, SQLiteWriter.ofOthers
        ])
    func plans(_ question: String) async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let store = try open(folder)
        try await park(10, of: 0..<50, in: store)
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
        let folder = try TemporaryStore()
        defer { folder.remove() }
        try open(folder).close()
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
