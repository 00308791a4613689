import PushModel
import Synchronization

/// Pushes that have ended with their registrations, remembered as long as one of them may be on its way into
/// a lane's memory. None of them is sent.
///
/// Few pushes end in this way, and those that wait in the store are not among them. Looked at before each
/// send.
final class RevokedPushes: Sendable {
    /// Longer than a lease, after which nothing that was handed out is sent, and longer than any request.
    private static let span = Duration.seconds(180)
    /// As many as all lanes hold; some megabytes.
    private static let most = 100_000

    private struct State {
        var ids: Set<PushID> = []
        var order = Fifo<(id: PushID, at: ContinuousClock.Instant)>()
    }

    private let state = Mutex(State())
    /// Nearly always 0, so that most sends pay for no more than this.
    private let count = Atomic<Int>(0)

    func note(_ ids: [PushID], at now: ContinuousClock.Instant) {
        state.withLock { state in
            for id in ids where state.ids.insert(id).inserted { state.order.append((id, now)) }
            while let oldest = state.order.first,
                state.ids.count > Self.most || now - oldest.at >= Self.span
            {
                _ = state.order.popFirst()
                state.ids.remove(oldest.id)
            }
            count.store(state.ids.count, ordering: .releasing)
        }
    }

    /// Called under a lane's lock, so it takes no other lock.
    func contains(_ id: PushID) -> Bool {
        guard count.load(ordering: .acquiring) > 0 else { return false }
        return state.withLock { $0.ids.contains(id) }
    }
}
