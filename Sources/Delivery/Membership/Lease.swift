import PushModel
import Synchronization

/// How long this process owns its rows (docs/architecture.md, Leases).
///
/// The process counts its twenty seconds from *before* it sent the renewal, on a clock that counts
/// suspension, so it always gives up earlier than the store believes.
final class Lease: Sendable {
    /// What a renewal allows. A class, because each push asks for it, and the compiler does not know the size
    /// of an instant.
    final class Grant: Sendable {
        /// After that no bytes of a push may reach a socket.
        let sendBefore: ContinuousClock.Instant
        let term: Int

        init(sendBefore: ContinuousClock.Instant, term: Int) {
            self.sendBefore = sendBefore
            self.term = term
        }
    }

    private struct State {
        var aliveUntil: ContinuousClock.Instant
        /// Of `aliveUntil` and `term`.
        var grant: Grant
        var term = 0
        /// Why the last renewal failed, or a call since; `nil` while the store takes commits.
        var fault: StoreError.Code?
    }

    private let state: Mutex<State>
    private let store: any LeaseRenewal
    private let limits: DeliveryLimits
    private let world: World
    private let journal: Journal

    init(store: any LeaseRenewal, limits: DeliveryLimits, world: World, journal: Journal) {
        self.store = store
        self.limits = limits
        self.world = world
        self.journal = journal
        let now = world.instant()
        state = Mutex(
            State(aliveUntil: now, grant: Grant(sendBefore: now - limits.leaseMargin, term: 0)))
    }

    /// The number of this unbroken run of renewals. Pushes that a lane holds from an earlier run may belong
    /// to another process by now.
    var term: Int { state.withLock(\.term) }

    /// Why the store takes no commits; `nil` while it does. Known with the next renewal at the latest.
    var storeFault: StoreError.Code? { state.withLock(\.fault) }

    /// A commit failed. The next renewal shows whether that lasts.
    func note(_ error: StoreError) {
        guard error.code != .full else { return }
        state.withLock { $0.fault = error.code }
    }

    /// `nil` when its moment has passed.
    func grant() -> Grant? { grant(at: world.instant()) }

    /// The same at a moment that the caller has just asked the world for: lanes do so for each push.
    func grant(at instant: ContinuousClock.Instant) -> Grant? {
        let current = state.withLock(\.grant)
        return current.sendBefore > instant ? current : nil
    }

    func renew() async throws(StoreError) {
        let began = world.instant()
        do {
            try await store.renew(for: limits.aliveFor)
        } catch {
            note(error)
            throw error
        }
        let ended = world.instant()
        state.withLock { state in
            // Between the old end and this renewal the store took us for dead, and may have given our rows
            // away.
            if ended > state.aliveUntil { state.term += 1 }
            state.aliveUntil = max(state.aliveUntil, began + limits.aliveFor)
            state.grant = Grant(sendBefore: state.aliveUntil - limits.leaseMargin, term: state.term)
            state.fault = nil
        }
    }

    /// Renews until cancelled. A failure is tried again at the next beat: three fit before the lease ends.
    ///
    /// - Parameter recovered: called at the first renewal after a fault.
    /// - Parameter beat: called before each renewal.
    func run(recovered: () -> Void = {}, beat: () -> Void) async {
        while !Task.isCancelled {
            do { try await world.sleep(world.instant() + limits.renewEvery) } catch { return }
            beat()
            let wasOut = storeFault != nil
            do {
                try await renew()
                if wasOut { recovered() }
            } catch {
                journal.note("lease not renewed", [.code: ErrorCode(error)], level: .error)
            }
        }
    }
}
