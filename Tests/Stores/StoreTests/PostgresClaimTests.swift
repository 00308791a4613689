import PostgresStore
import PushModel
import PushTesting
import Testing

@Suite("Claims from a large outbox on PostgreSQL", .timeLimit(.minutes(30)))
struct PostgresClaimTests {
    private static let lane = "acme-chat/apns/production"

    private func open(
        _ database: PostgresDatabase, origins: Int? = nil
    ) async throws -> PostgresStore {
        var limits = database.limits
        limits.outboxRows = 1_000_000
        if let origins { limits.originsPerClaim = origins }
        return try await database.open(OwnerID(Digest16(high: 1, low: 1)), limits: limits)
    }

    /// Parked pushes, `count` of each origin in the range; due after `later`.
    private func park(
        _ count: Int, of origins: Range<Int>, in store: PostgresStore, _ clock: ManualClock,
        later: Duration = .zero,
        _ level: PushClass = .normal
    ) async throws {
        let now = clock.now
        // Those that are put off are others.
        let first = UInt64(later.components.seconds) * 1_000
        let pushes = origins.flatMap { origin in
            (0..<count).map { number in
                StoredPush(
                    row: 0, id: PushID(Digest16(high: UInt64(origin), low: UInt64(number) + first)),
                    lane: Self.lane,
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

    private func claim(_ limit: Int, _ store: PostgresStore, _ clock: ManualClock) async throws
        -> [StoredPush]
    {
        try await store.claim(Self.lane, due: clock.now, limit: limit)
    }

    @Test("However small the claims, they take turns over origins")
    func tiny() async throws {
        let database = try await PostgresDatabase()
        let store = try await open(database)
        try await park(300, of: 0..<1, in: store, database.clock)
        try await park(4, of: 1..<5, in: store, database.clock)
        var served: [UInt64] = []
        for _ in 0..<20 { served += try await claim(1, store, database.clock).map(\.origin.high) }
        #expect(served == Array(repeating: [0, 1, 2, 3, 4], count: 4).flatMap(\.self))
        #expect(try await claim(3, store, database.clock).map(\.origin.high) == [0, 0, 0])
    }

    @Test("With one origin owing twenty thousand, a claim serves the others whole")
    func noisy() async throws {
        let database = try await PostgresDatabase()
        let store = try await open(database)
        try await park(20_000, of: 0..<1, in: store, database.clock)
        try await park(3, of: 1..<4, in: store, database.clock)
        let first = try await claim(1_000, store, database.clock)
        #expect(first.count == 1_000)
        let counts = Dictionary(grouping: first, by: \.origin.high).mapValues(\.count)
        #expect(counts == [0: 991, 1: 3, 2: 3, 3: 3])
        // They alternate from the first on.
        #expect(Set(first.prefix(4).map(\.origin.high)) == [0, 1, 2, 3])
    }

    @Test("Origins whose pushes are all in back-off keep nobody else's in the store")
    func backoff() async throws {
        let database = try await PostgresDatabase()
        let store = try await open(database, origins: 100)
        try await park(1, of: 0..<1_000, in: store, database.clock, later: .seconds(60))
        try await park(2, of: 999..<1_000, in: store, database.clock)
        var claimed: [StoredPush] = []
        var rounds = 0
        while claimed.count < 2, rounds < 24 {
            claimed += try await claim(50, store, database.clock)
            rounds += 1
        }
        #expect(claimed.map(\.origin.high) == [999, 999])
        database.clock.advance(by: .seconds(60))
        var rest = 0
        for _ in 0..<100 { rest += try await claim(50, store, database.clock).count }
        #expect(rest == 1_000)
    }

    @Test("More origins than one claim serves all have their turn, each push once")
    func manyOrigins() async throws {
        let database = try await PostgresDatabase()
        let store = try await open(database, origins: 16)
        try await park(2, of: 0..<200, in: store, database.clock)
        var ids: [PushID] = []
        for _ in 0..<25 { ids += try await claim(16, store, database.clock).map(\.id) }
        #expect(Set(ids).count == 400)
        // Nobody is served a second time before everybody was served once.
        #expect(Set(ids.prefix(200).map(\.value.high)).count == 200)
    }
}
