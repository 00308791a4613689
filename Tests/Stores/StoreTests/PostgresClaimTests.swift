import PostgresStore
import PushModel
import PushTesting
import Testing

@Suite("Claims from a large outbox on PostgreSQL", .timeLimit(.minutes(30)))
struct PostgresClaimTests {
    private func outbox(origins: Int? = nil) async throws -> LargeOutbox {
        let database = try await PostgresDatabase()
        var limits = database.limits
        limits.outboxRows = 1_000_000
        if let origins { limits.originsPerClaim = origins }
        let store = try await database.open(OwnerID(Digest16(high: 1, low: 1)), limits: limits)
        return LargeOutbox(store: store, clock: database.clock)
    }

    @Test("However small the claims, they take turns over origins")
    func tiny() async throws { try await outbox().expectTurns() }

    @Test("With one origin owing twenty thousand, a claim serves the others whole")
    func noisy() async throws { try await outbox().expectOthers(beside: 20_000) }

    @Test("Origins whose pushes are all in back-off keep nobody else's in the store")
    func backoff() async throws {
        try await outbox(origins: 100).expectBackoff(within: 24, together: false)
    }

    @Test("More origins than one claim serves all have their turn, each push once")
    func manyOrigins() async throws { try await outbox(origins: 16).expectEach() }
}
