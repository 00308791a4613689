import Delivery
import PushModel
import SessionPush
import Synchronization

/// Which storage servers this process connects to, where several serve one instance on one store: each goes
/// to one of them, and to another when that one has gone. Members of a swarm all tell of the same messages,
/// so they are parted (decision 0074).
final class SwarmShare: Sendable {
    private struct State {
        /// Since when no node was connected; `nil`: one is.
        var deafSince: ContinuousClock.Instant?
        /// For good.
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

    /// Which nodes fall to us of these swarms' members; `nil` while that is not known.
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

    /// A process that knows no nodes, or has long reached none, leaves its share to others.
    func look(_ statistics: SwarmStatistics, at now: ContinuousClock.Instant) {
        guard let membership else { return }
        // Under the lock, so that who leaves for good is not made a member by a look that was under way.
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
    /// - Returns: whether there is anybody to take it over; the second time nobody is asked.
    @discardableResult
    func leave() async -> Bool {
        guard let membership, !hadLeft() else { return false }
        // Of one that came since the last reading, as a new relay in our place does, nothing is known yet.
        if !Task.isCancelled { await membership.renew() }
        let isFollowed = membership.roster(of: group)?.hasOthers(at: membership.instant) ?? false
        membership.leave(group)
        return isFollowed
    }

    /// Whether it had left before; now it has.
    private func hadLeft() -> Bool {
        state.withLock { state in
            defer { state.hasLeft = true }
            return state.hasLeft
        }
    }
}
