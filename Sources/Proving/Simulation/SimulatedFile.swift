import Foundation
import PushModel
import SQLiteStore
import Synchronization

/// A database file on a disk that can lose power: SQLite's own engine above, and below it what was written
/// and what was synced, kept apart.
final class SimulatedFile: Sendable {
    private struct State {
        var store: SQLiteStore?
        /// Files of before this life are as they were left.
        var left: [SimulatedDisk.Remains] = []
    }

    private let path: String
    private let scheduler: Scheduler
    private let isSynced: Bool
    private let state = Mutex(State())

    init(_ scheduler: Scheduler, isSynced: Bool) {
        self.scheduler = scheduler
        self.isSynced = isSynced
        let folder = FileManager.default.temporaryDirectory.path
        path = "\(folder)/\(SimulatedDisk.mark)\(UUID().uuidString)"
    }

    /// Opens or makes the file, as the relay does.
    func open(owner: OwnerID, world: World) throws(StoreError) -> SQLiteStore {
        try SimulatedDisk.install()
        var limits = SQLiteLimits()
        limits.lazyWait = 0
        // So that short runs move pages into the file, and power fails meanwhile.
        limits.checkpointPages = 16
        let store = try SQLiteStore(
            path: path, owner: owner, limits: limits, synchronous: isSynced ? .full : .dangerNormal,
            world: world)
        state.withLock { $0.store = store }
        return store
    }

    /// The process was killed: the system has all that it wrote, and nothing more comes.
    func abandon() {
        guard let store = take() else { return }
        let remains = SimulatedDisk.freeze(path)
        // It moves its log into the file on closing, which a killed process cannot: that is undone.
        try? store.close()
        for one in remains { SimulatedDisk.restore(one.path, one.written) }
        state.withLock { $0.left = remains }
    }

    /// What was not synced since is kept, lost or torn, as chance has it; after ``abandon()``.
    func losePower() {
        let remains = state.withLock { state in
            defer { state.left = [] }
            return state.left
        }
        for one in remains {
            SimulatedDisk.restore(one.path, one.afterPowerLoss { scheduler.random(in: $0) })
        }
    }

    /// In good order.
    func close() {
        // What cannot be closed is left, and opened again as after a crash.
        try? take()?.close()
    }

    private func take() -> SQLiteStore? {
        state.withLock { state in
            defer { state.store = nil }
            return state.store
        }
    }

    func remove() {
        abandon()
        for suffix in ["", "-wal", "-shm", ".lock"] {
            // What was never made need not go.
            try? FileManager.default.removeItem(atPath: path + suffix)
        }
    }
}
