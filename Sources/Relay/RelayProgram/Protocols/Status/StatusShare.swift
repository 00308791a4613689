import Delivery
import PushModel
import Synchronization

/// Which topics this process answers, where several serve one instance on one store, each with a node of its
/// own: one process each topic, and another when that one has gone.
///
/// What one had taken when it died, and what came until its share was another's, is asked of the store
/// (``StatusLink``): deployed senders say nothing twice. Where two
/// processes see this differently for a moment, both answer: requests are remembered in the store, so that
/// nobody is pushed to twice.
final class StatusShare: Sendable {
    private let membership: Membership
    private let group: GroupName
    /// As it was known last: a process that stops has left, and answers what it had heard.
    private let roster = Mutex<Roster?>(nil)

    init(of instance: ConfiguredName, _ membership: Membership) {
        self.membership = membership
        group = GroupName(listeningFor: instance)
    }

    /// - Parameter topic: its four bytes.
    func falls(_ topic: UInt32) -> Bool {
        guard let roster = current else { return true }
        let key = Digest16(high: 0, low: UInt64(topic))
        return roster.worker(of: key, at: membership.instant)?.isUs ?? true
    }

    /// Others that are there no more, and until when each surely answered its share.
    var ended: [Roster.Ended] { current?.ended(at: membership.instant) ?? [] }

    private var current: Roster? {
        let now = membership.roster(of: group)
        return roster.withLock { last in
            last = now ?? last
            return last
        }
    }

    /// A process that hears nothing leaves its share to others.
    func hears(_ hears: Bool) {
        if hears {
            membership.enter(group)
        } else {
            membership.leave(group)
        }
    }
}
