import PushModel
import Synchronization

/// How long this process may count on its rows (docs/architecture.md, Leases).
///
/// The process counts its twenty seconds from *before* it sent the renewal, on a clock that counts
/// suspension, so it always gives up earlier than the store believes.
final class Lease: Sendable {
    /// What a renewal allows. A class: each push asks for it, and a moment has no size that the compiler
    /// knows.
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

    /// Which unbroken run of renewals this is. What a lane holds from an earlier one may be another's by now.
    var term: Int { state.withLock(\.term) }

    /// Why the store takes no commits; `nil` while it does. Known at the latest with the next renewal.
    var storeFault: StoreError.Code? { state.withLock(\.fault) }

    /// A commit failed. Whether that lasts, the next renewal tells.
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
            // Between the old end and this renewal we were dead to the store, which may have given our rows
            // away.
            if ended > state.aliveUntil { state.term += 1 }
            state.aliveUntil = max(state.aliveUntil, began + limits.aliveFor)
            state.grant = Grant(sendBefore: state.aliveUntil - limits.leaseMargin, term: state.term)
            state.fault = nil
        }
    }

    /// Renews until cancelled. A failure is tried again at the next beat: three fit before the lease ends.
    ///
    /// - Parameter recovered: told of a renewal behind a fault.
    /// - Parameter beat: told before each renewal.
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
