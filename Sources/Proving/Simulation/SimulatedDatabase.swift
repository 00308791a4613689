import MemoryStore
import PushModel
import Synchronization

/// A database server that several processes reach over a network: the memory engine's rows behind a log.
///
/// What is answered is in the log; a crash takes back what was not. Its answers can be lost, and who asked
/// then does not know whether it was done.
final class SimulatedDatabase: Sendable {
    private struct State {
        var isUp = true
        /// Raised with each crash: what was under way before it is not answered.
        var life = 0
        /// What a crash leaves when commits do not wait for the log.
        let logged: MemoryStore.Image
        /// How far the server's clock is from the true one.
        var skew = Duration.zero
    }

    let shared = MemoryStore.Shared(rows: 100_000)
    let machine: SimulatedExecutor
    private let scheduler: Scheduler
    private let state: Mutex<State>
    /// False: commits are answered before they are in the log.
    private let waitsForLog: Bool

    /// By the server's wall clock.
    private var now: UnixTime { scheduler.now + state.withLock(\.skew) }
    /// What is broken on purpose: owners live and die by it.
    private let leasesByWallClock: Bool

    init(_ scheduler: Scheduler, waitsForLog: Bool, leasesByWallClock: Bool) {
        self.scheduler = scheduler
        self.waitsForLog = waitsForLog
        self.leasesByWallClock = leasesByWallClock
        machine = scheduler.machine()
        state = Mutex(State(logged: shared.image))
    }

    /// The engine of one process, before its network.
    func engine(of owner: OwnerID) -> MemoryStore {
        MemoryStore(
            owner: owner, sharing: shared, clock: { self.now },
            spans: { self.leasesByWallClock ? self.now : self.scheduler.now })
    }

    func execute<Value: Sendable>(
        _ operation: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let life = state.withLock { $0.isUp ? $0.life : nil }
        guard let life else { throw StoreError(.unavailable) }
        if waitsForLog { await scheduler.pause(.microseconds(100) ... .milliseconds(3)) }
        guard isSame(life) else { throw StoreError(.unavailable) }
        // In one step into rows and log, so that a crash before it leaves nothing and one after it all.
        let value = try await operation()
        await scheduler.pause(.microseconds(50) ... .microseconds(500))
        guard isSame(life) else { throw StoreError(.uncertain) }
        return value
    }

    private func isSame(_ life: Int) -> Bool { state.withLock { $0.isUp && $0.life == life } }

    /// Ends at once; what was not in the log is gone.
    func crash() {
        state.withLock { state in
            state.isUp = false
            state.life += 1
            if !waitsForLog { shared.image = state.logged }
        }
    }

    /// Another server takes its place, with a clock of its own.
    func failOver(skew: Duration) { state.withLock { $0.skew = skew } }

    func start() { state.withLock { $0.isUp = true } }
}
