import Delivery
import MarmotPush
import PushModel
import Synchronization

/// Which wraps are this process's to open, where several listen for one key at the same relays.
///
/// All of them hear everything; each opens what falls to it by the wrap's id. What falls to another is held
/// in memory for half a minute, as it came, sealed: should that other turn out to have died, or to have left,
/// before it can have opened it, the one that has its share then does. So a process that dies delays its
/// share and loses none of it; what it opened in the seconds between its last renewal and its end is opened
/// twice (decision 0039).
final class WrapShare: Sendable {
    /// Tells an event from all others whose id fits, because the id speaks for all but the signature. Not by
    /// the id alone: nobody has looked at signatures yet, and a relay that repeats an event under a false one
    /// would hide what the other relays say.
    private struct Name: Hashable {
        let id: [UInt8]
        let signature: [UInt8]?
    }

    private struct Held {
        let item: WrapQueue.Item
        let key: Digest16
        var name: Name { Name(id: item.event.id, signature: item.event.signature) }
        /// Whose it is; `nil`: nobody could tell yet.
        var worker: OwnerID?
        let at: ContinuousClock.Instant
    }

    private struct State {
        var held: [Held] = []
        var names: Set<Name> = []
        var bytes = 0
        var readings = -1
    }

    private let state = Mutex(State())
    private let membership: Membership?
    private let group: GroupName
    private let publicKey: Digest16
    private let limits: NostrLimits

    /// - Parameter membership: `nil`: this process is the only one.
    init(of instance: ConfiguredName, _ membership: Membership?, limits: NostrLimits) {
        self.membership = membership
        self.limits = limits
        group = GroupName(listeningFor: instance)
        // The list is one piece of work beside the wraps, and falls to a member likewise.
        publicKey = Digest16(high: 0x6C69_7374, low: 0)
    }

    /// Whether others may listen too.
    var isShared: Bool { membership != nil }

    /// Whether this process publishes the relay list for all that listen.
    var speaks: Bool {
        guard let membership else { return true }
        return membership.roster(of: group)?.worker(of: publicKey, at: membership.instant)?.isUs ?? false
    }

    /// Whether some relay's subscription is in force. A process that hears nothing leaves its share to
    /// others.
    func listens(_ isListening: Bool) {
        if isListening { membership?.enter(group) } else { membership?.leave(group) }
    }

    /// Whether a wrap falls to us; else it is held.
    func falls(to item: WrapQueue.Item) -> Bool {
        guard let membership else { return true }
        let now = membership.instant
        guard let key = Self.key(item.event) else { return true }
        let worker = membership.roster(of: group)?.worker(of: key, at: now)
        // One whose id does not fit opens nowhere, so that any process that hears it may say so.
        if worker?.isUs == true || !item.event.hasRightID { return true }
        state.withLock { state in hold(Held(item: item, key: key, worker: worker?.owner, at: now), &state) }
        return false
    }

    /// What falls to us since the members were last read.
    func takeUp() -> [WrapQueue.Item] {
        guard let membership else { return [] }
        let now = membership.instant
        let readings = membership.readings
        guard let roster = membership.roster(of: group) else { return [] }
        return state.withLock { state in
            drop(before: now - limits.heldFor, &state)
            guard readings != state.readings else { return [] }
            state.readings = readings
            return take(by: roster, at: now, &state)
        }
    }

    /// Wraps held, for a metric.
    var held: Int { state.withLock(\.held.count) }

    // MARK: Inside

    private func take(
        by roster: Roster, at now: ContinuousClock.Instant, _ state: inout State
    ) -> [WrapQueue.Item] {
        let ended = Dictionary(
            roster.ended(at: now).map { ($0.owner, $0.workedUntil) }, uniquingKeysWith: min)
        var ours: [WrapQueue.Item] = []
        var kept: [Held] = []
        for var held in state.held {
            // The store tells of the dead for longer than anything is held.
            let isOpen = held.worker.map { worker in ended[worker].map { held.at >= $0 } ?? false } ?? true
            guard isOpen, let worker = roster.worker(of: held.key, at: now) else {
                kept.append(held)
                continue
            }
            if worker.isUs {
                // A share of the queue of its own: the relay's belongs to who reads that relay.
                ours.append(.init(event: held.item.event, source: held.item.source, relay: 0))
                state.names.remove(held.name)
                state.bytes -= held.item.event.content.count
            } else {
                held.worker = worker.owner
                kept.append(held)
            }
        }
        state.held = kept
        return ours
    }

    private func hold(_ held: Held, _ state: inout State) {
        // Each relay says it once.
        guard state.names.insert(held.name).inserted else { return }
        state.held.append(held)
        state.bytes += held.item.event.content.count
        var gone = 0
        while state.held.count - gone > limits.heldEvents || state.bytes > limits.heldBytes,
            gone < state.held.count - 1
        {
            forget(state.held[gone], &state)
            gone += 1
        }
        state.held.removeFirst(gone)
    }

    private func drop(before: ContinuousClock.Instant, _ state: inout State) {
        let gone = state.held.prefix { $0.at < before }.count
        for held in state.held.prefix(gone) { forget(held, &state) }
        state.held.removeFirst(gone)
    }

    private func forget(_ held: Held, _ state: inout State) {
        state.names.remove(held.name)
        state.bytes -= held.item.event.content.count
    }

    /// The first half of the id, which is a digest. `nil` for one that is no id: it opens nowhere.
    private static func key(_ event: NostrEvent) -> Digest16? { Digest16(event.id.prefix(16)) }
}
