import AtRest
import Foundation
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Synchronization

enum EngineKind: String, CaseIterable, Sendable {
    case memory, sqlite
}

/// What outlives a process: one store, opened by one core after another, and the clock they live by.
final class Depot: Sendable {
    let clock = ManualClock()
    let world: World
    private let kind: EngineKind
    private let rows: Int
    private let shared: MemoryStore.Shared
    private let keys: AtRestKeys
    private let path: String
    private let file = Mutex<SQLiteStore?>(nil)
    private let spied = Mutex<EngineSpy?>(nil)

    init(_ kind: EngineKind = .memory, rows: Int = 100_000) {
        self.kind = kind
        self.rows = rows
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
    func open(_ world: World) async throws -> SealedStore {
        let engine = EngineSpy(try engine())
        spied.withLock { $0 = engine }
        return try await SealedStore(engine: engine, keys: keys, world: world)
    }

    /// What was asked of the engine by the process that opened it last.
    var asked: [String] { spied.withLock { $0?.calls.text ?? [] } }

    private func engine() throws -> any Engine {
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        switch kind {
        case .memory: return MemoryStore(owner: owner, sharing: shared, clock: { [clock] in clock.now })
        case .sqlite:
            var limits = SQLiteLimits()
            limits.outboxRows = rows
            let store = try SQLiteStore(path: path, owner: owner, limits: limits, world: world)
            file.withLock { $0 = store }
            return store
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
