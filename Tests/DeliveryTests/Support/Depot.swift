import AtRest
import Foundation
import MemoryStore
import PostgresStore
import PushModel
import PushTesting
import SQLiteStore
import Synchronization

enum EngineKind: String, CaseIterable, Sendable {
    case memory, sqlite
}

/// What outlives a process: one store, opened by one core after another, and the clock they live by.
final class Depot: Sendable {
    let clock: ManualClock
    let world: World
    private let start: UnixTime
    private enum Kind {
        case memory, sqlite
        case postgres(url: String)
    }

    private let kind: Kind
    private let rows: Int
    private let shared: MemoryStore.Shared
    private let keys: AtRestKeys
    private let path: String
    private let file = Mutex<SQLiteStore?>(nil)
    private let spied = Mutex<EngineSpy?>(nil)

    convenience init(_ kind: EngineKind = .memory, rows: Int = 100_000) {
        self.init(kind == .memory ? Kind.memory : Kind.sqlite, rows: rows)
    }

    /// A store that several processes may open at once.
    static func shared(_ kind: SharedEngine) async throws -> Depot {
        switch kind {
        case .memory: Depot(Kind.memory, rows: 100_000)
        case .postgres:
            Depot(Kind.postgres(url: try await PostgresCluster.shared.freshDatabase()), rows: 100_000)
        }
    }

    private init(_ kind: Kind, rows: Int) {
        self.kind = kind
        self.rows = rows
        clock = ManualClock()
        start = clock.now
        world = clock.world(seed: 7)
        shared = MemoryStore.Shared(rows: rows)
        keys = AtRestKeys.generate(world)
        path = FileManager.default.temporaryDirectory.path + "/sealbell-delivery-\(UUID().uuidString)"
    }

    deinit {
        for suffix in ["", "-wal", "-shm", ".lock"] {
            // What was never made need not go.
            try? FileManager.default.removeItem(atPath: path + suffix)
        }
    }

    /// The store as the next process opens it, under an owner of its own.
    func open(_ world: World, _ services: PushServices = .standard) async throws -> SealedStore {
        let engine = EngineSpy(try await engine())
        spied.withLock { $0 = engine }
        return try await SealedStore(engine: engine, keys: keys, world: world, services: services)
    }

    /// What was asked of the engine by the process that opened it last.
    var asked: [String] { spied.withLock { $0?.calls.text ?? [] } }

    private func engine() async throws -> any Engine {
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        switch kind {
        case .memory: return MemoryStore(owner: owner, sharing: shared, clock: { [clock] in clock.now })
        case .sqlite:
            let limits = changing(SQLiteLimits()) { $0.outboxRows = rows }
            let store = try SQLiteStore(path: path, owner: owner, limits: limits, world: world)
            file.withLock { $0 = store }
            return store
        case .postgres(let url):
            var limits = PostgresLimits()
            limits.outboxRows = rows
            // A hundred is what a server has by default, and other tests have theirs.
            limits.connections = 2
            // The server's clock, and what the test's has moved since it was made.
            limits.clockAhead = { [clock, start] in clock.now.since(start) }
            return try await PostgresStore(
                try PostgresAddress(url), owner: owner, limits: limits, world: world)
        }
    }

    /// The process that had it open is gone.
    func close() throws {
        try file.withLock { store in
            try store?.close()
            store = nil
        }
    }
}
