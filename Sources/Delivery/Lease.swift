import PushModel
import Synchronization

/// How long this process may count on its rows (DESIGN §3, leases).
///
/// The process counts its twenty seconds from *before* it sent the renewal, on a clock that counts
/// suspension, so it always gives up earlier than the store believes.
final class Lease: Sendable {
    private let aliveUntil: Mutex<ContinuousClock.Instant>
    private let outbox: any Outbox
    private let limits: DeliveryLimits
    private let world: World
    private let journal: Journal

    init(outbox: any Outbox, limits: DeliveryLimits, world: World, journal: Journal) {
        self.outbox = outbox
        self.limits = limits
        self.world = world
        self.journal = journal
        aliveUntil = Mutex(world.instant())
    }

    /// After this moment no bytes of a push may reach a socket; `nil` when it has passed.
    func sendBefore() -> ContinuousClock.Instant? {
        let latest = aliveUntil.withLock { $0 } - limits.requestDeadline
        return latest > world.instant() ? latest : nil
    }

    func renew() async throws(StoreError) {
        let began = world.instant()
        try await outbox.renew(for: limits.aliveFor)
        aliveUntil.withLock { $0 = max($0, began + limits.aliveFor) }
    }

    /// Renews until cancelled. A failure is tried again at the next beat: three fit before the lease ends.
    func run() async {
        while !Task.isCancelled {
            do { try await world.sleep(world.instant() + limits.renewEvery) } catch { return }
            do { try await renew() } catch {
                journal.note("lease not renewed", [.code: ErrorCode(error)], level: .error)
            }
        }
    }
}
