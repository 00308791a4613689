import Delivery
import PushModel
import SessionPush
import Synchronization

/// The storage servers that this process connects to, if several processes serve one instance on one store:
/// each server goes to one of them, and to another when that one has gone. All members of a swarm report the
/// same messages, so the members are divided (decision 0074).
final class SwarmShare: Sendable {
    private struct State {
        /// Since when no node was connected; `nil`: one is.
        var deafSince: ContinuousClock.Instant?
        /// Left for good.
        var hasLeft = false
    }

    private let membership: Membership?
    private let group: GroupName
    private let state = Mutex(State())
    private let deafAfter: Duration

    /// - Parameter membership: `nil`: this process is the only one.
    init(of instance: ConfiguredName, _ membership: Membership?, deafAfter: Duration) {
        self.membership = membership
        self.deafAfter = deafAfter
        group = GroupName(listeningFor: instance)
    }

    /// The members of these swarms that fall to us; `nil` while that is not known.
    func ours(of swarms: [UInt64: [NodeKey]]) -> Set<NodeKey>? {
        guard let membership else { return Set(swarms.values.joined()) }
        guard let roster = membership.roster(of: group) else { return nil }
        let now = membership.instant
        var ours: Set<NodeKey> = []
        for members in swarms.values {
            for (key, worker) in zip(members, roster.workers(of: members.map(\.digest), at: now))
            where worker.isUs { ours.insert(key) }
        }
        return ours
    }

    /// A process that knows no nodes, or has reached none for long, leaves its share to others.
    func look(_ statistics: SwarmStatistics, at now: ContinuousClock.Instant) {
        guard let membership else { return }
        // Under the lock, so that a look that was under way does not make a process a member again that
        // leaves for good.
        state.withLock { state in
            guard !state.hasLeft else { return }
            let isHearing = statistics.connected > 0 || statistics.ours == 0
            state.deafSince = isHearing ? nil : state.deafSince ?? now
            let isDeaf = state.deafSince.map { now - $0 >= deafAfter } ?? false
            if statistics.hasNodes, !isDeaf { membership.enter(group) } else { membership.leave(group) }
        }
    }

    /// Leaves the share to others for good: no later look joins again.
    ///
    /// - Returns: whether another process can take it over; false the second time.
    @discardableResult
    func leave() async -> Bool {
        guard let membership, !hadLeft() else { return false }
        // A process that came since the last reading, such as a new relay in our place, is not known yet.
        if !Task.isCancelled { await membership.renew() }
        let isFollowed = membership.roster(of: group)?.hasOthers(at: membership.instant) ?? false
        membership.leave(group)
        return isFollowed
    }

    /// Whether it had already left; it has from now on.
    private func hadLeft() -> Bool {
        state.withLock { state in
            defer { state.hasLeft = true }
            return state.hasLeft
        }
    }
}
