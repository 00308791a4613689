import Delivery
import PushModel
import SessionPush
import Synchronization

/// Which storage servers this process connects to, where several serve one instance on one store: each goes
/// to one of them, and to another when that one has gone.
final class SwarmShare: Sendable {
    private let membership: Membership?
    private let group: GroupName
    /// Since when no node was connected; `nil`: one is.
    private let deafSince = Mutex<ContinuousClock.Instant?>(nil)
    private let deafAfter: Duration

    /// - Parameter membership: `nil`: this process is the only one.
    init(of instance: ConfiguredName, _ membership: Membership?, deafAfter: Duration) {
        self.membership = membership
        self.deafAfter = deafAfter
        group = GroupName(listeningFor: instance)
    }

    /// Tells nodes that fall to us from the others; `nil` while that is not known.
    var falls: (@Sendable (NodeKey) -> Bool)? {
        guard let membership else { return { _ in true } }
        guard let roster = membership.roster(of: group) else { return nil }
        let now = membership.instant
        return { roster.worker(of: $0.digest, at: now)?.isUs ?? false }
    }

    /// A process that knows no nodes, or has long reached none, leaves its share to others.
    func look(_ statistics: SwarmStatistics, at now: ContinuousClock.Instant) {
        guard let membership else { return }
        let isDeaf = deafSince.withLock { since in
            since = statistics.connected > 0 || statistics.ours == 0 ? nil : since ?? now
            return since.map { now - $0 >= deafAfter } ?? false
        }
        if statistics.hasNodes, !isDeaf { membership.enter(group) } else { membership.leave(group) }
    }

    func leave() { membership?.leave(group) }
}
