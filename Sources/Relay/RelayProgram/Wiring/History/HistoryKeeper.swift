import AtRest
import PushModel
import ServiceLifecycle
import Synchronization

/// Writes down what became of pushes, by registration: once a minute, when somebody asks, and at a stop
/// (decision 0144). A crash loses what was counted since.
final class HistoryKeeper: Service, Sendable {
    private static let every = Duration.seconds(60)
    /// Counts that wait for a store which fails: as many as one minute has.
    private static let mostWaiting = HistoryTally.deliveries + HistoryTally.others
    /// Histories that are written between two looks at how many there are.
    private static let boundEvery = 5_000
    /// Records of one commit, where all are forgotten.
    private static let forgottenPerCommit = 1_000

    private struct State {
        var isOn = false
        /// What was kept before is still to be deleted.
        var mustForget = false
        var waiting: [RegistrationCount] = []
        /// Written since the last look; the process before may have left too many.
        var written = HistoryKeeper.boundEvery
        var gap: Gap?
    }

    /// When pushes met more registrations a minute than are counted. What is not told of that time may have
    /// been all the same.
    struct Gap: Sendable, Hashable {
        let since: UnixTime
        let until: UnixTime
    }

    private let store: SealedStore
    private let bounds: SealedStore.HistoryBounds
    private let world: World
    private let journal: Journal
    private let told: @Sendable (RegistrationCount) -> Void
    private let tally = HistoryTally()
    private let state = Mutex(State())

    /// - Parameter told: hears of each count that was written.
    init(
        _ store: SealedStore, bounds: SealedStore.HistoryBounds = SealedStore.HistoryBounds(), world: World,
        journal: Journal, told: @escaping @Sendable (RegistrationCount) -> Void = { _ in }
    ) {
        self.told = told
        (self.store, self.bounds, self.world, self.journal) = (store, bounds, world, journal)
    }

    /// What a push met. Called under a lane's lock.
    func note(_ registration: Digest16, _ event: RegistrationEvent, _ reason: Reason, at now: UnixTime) {
        tally.note(registration, event, reason, at: now)
    }

    /// Keeps a history from now on, or none: then what was kept goes within the minute.
    func turn(on: Bool) {
        state.withLock { state in
            state.isOn = on
            state.mustForget = !on
            if !on { (state.waiting, state.gap) = ([], nil) }
        }
        tally.turn(on: on)
    }

    var isOn: Bool { state.withLock(\.isOn) }

    /// Of this process; `nil`: every push was counted.
    var gap: Gap? { state.withLock(\.gap) }

    /// What is known of a registration, up to the last ``write()``; `nil`: nothing.
    func history(of registration: Digest16) async throws(StoreError) -> RegistrationHistory? {
        isOn ? try await store.history(of: registration) : nil
    }

    /// Writes what was counted since the last time. What the store does not take waits for the next time.
    func write() async {
        let (uncounted, counts, mustForget) = state.withLock { state in
            let taken = tally.take()
            defer { state.waiting = [] }
            return (taken.uncounted, state.waiting + taken.counts, state.mustForget)
        }
        if uncounted > 0, noteGap() {
            // Once: a relay of that size has them every minute.
            journal.note("pushes not counted in the history", [.count: uncounted], level: .warning)
        }
        var left: [RegistrationCount] = []
        do throws(StoreError) {
            if mustForget { try await forget() }
            guard !counts.isEmpty else { return }
            let written = try await store.count(counts, left: &left)
            counts.forEach(told)
            let mustLook = state.withLock { state in
                state.written += written
                guard state.written >= Self.boundEvery else { return false }
                state.written = 0
                return true
            }
            if mustLook { _ = try await store.boundHistories(bounds) }
        } catch {
            journal.note("history not written", [.code: ErrorCode(error)], level: .warning)
            state.withLock { state in
                guard state.isOn else { return }
                state.waiting = Array((state.waiting + left).prefix(Self.mostWaiting))
            }
        }
    }

    /// - Returns: whether it is the first.
    private func noteGap() -> Bool {
        let now = world.now()
        return state.withLock { state in
            let isFirst = state.gap == nil
            state.gap = Gap(since: state.gap?.since ?? now - Self.every, until: now)
            return isFirst
        }
    }

    private func forget() async throws(StoreError) {
        while try await store.forget(owner: SealedStore.historyOwner, limit: Self.forgottenPerCommit) > 0 {}
        state.withLock { if !$0.isOn { $0.mustForget = false } }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // The sleep ends early only by cancellation, which ends the loop.
                do { try await self.world.sleep(self.world.instant() + Self.every) } catch { return }
                await self.write()
            }
        }
        // Nothing is sent any more.
        await write()
    }
}
