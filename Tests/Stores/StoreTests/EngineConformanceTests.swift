import Foundation
import MemoryStore
import PostgresStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("Engines keep the same rules", .timeLimit(.minutes(30)))
struct EngineConformanceTests {
    private let clock = ManualClock()

    @Test("memory", arguments: EngineConformance.all)
    func memory(_ rule: ConformanceCase) async throws {
        let share = AppShare()
        let shared = MemoryStore.Shared(rows: EngineConformance.rowBound, share: share)
        let start = clock.now
        let open: @Sendable (OwnerID) -> any Engine = {
            MemoryStore(owner: $0, sharing: shared, clock: { clock.now }, spans: { start + clock.elapsed })
        }
        let rig = EngineRig(
            clock: clock, share: share, isShared: true, first: { open($0) }, next: { open($1) })
        await #expect(throws: Never.self) { try await rule.run(rig) }
    }

    @Test("SQLite", arguments: EngineConformance.all)
    func sqlite(_ rule: ConformanceCase) async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let path = folder.path
        let share = AppShare()
        let open: @Sendable (OwnerID) throws -> SQLiteStore = { owner in
            var limits = SQLiteLimits()
            limits.outboxRows = EngineConformance.rowBound
            limits.share = share
            return try SQLiteStore(path: path, owner: owner, limits: limits, world: clock.world(seed: 1))
        }
        let rig = EngineRig(
            clock: clock, share: share, isShared: false, first: { try open($0) }
        ) { earlier, owner in
            try (earlier as? SQLiteStore)?.close()
            return try open(owner)
        }
        await #expect(throws: Never.self) { try await rule.run(rig) }
    }

    @Test("PostgreSQL", arguments: EngineConformance.all)
    func postgres(_ rule: ConformanceCase) async throws {
        let database = try await PostgresDatabase()
        let rig = EngineRig(
            clock: database.clock, share: database.share, isShared: true,
            first: { try await database.open($0) },
            next: { try await database.open($1) })
        await #expect(throws: Never.self) { try await rule.run(rig) }
    }
}

/// A database of the tests' own server, and stores on it whose clock goes on with the test's.
struct PostgresDatabase: Sendable {
    let url: String
    let clock = ManualClock()
    let share = AppShare()

    init() async throws { url = try await PostgresCluster.shared.freshDatabase() }

    /// With two connections: a hundred is what a server has by default.
    var limits: PostgresLimits {
        var limits = PostgresLimits()
        limits.outboxRows = EngineConformance.rowBound
        limits.share = share
        limits.connections = 2
        let (clock, start) = (clock, clock.now)
        limits.clockAhead = { clock.now.since(start) }
        return limits
    }

    func open(_ owner: OwnerID, limits: PostgresLimits? = nil) async throws -> PostgresStore {
        try await PostgresStore(
            try PostgresAddress(url), owner: owner, limits: limits ?? self.limits, world: clock.world(seed: 1)
        )
    }
}

/// A store's file in a folder of its own.
struct TemporaryStore {
    let folder: TemporaryFolder
    var path: String { folder.file("relay.sqlite") }

    init() throws {
        // Before anything else opens a database in this process, or SQLite keeps its own memory.
        try BlankingFiles.install()
        folder = try TemporaryFolder()
    }

    func remove() { folder.remove() }
    func bytes() throws -> Data { try folder.bytes() }
}
