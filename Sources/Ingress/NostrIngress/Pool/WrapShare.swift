import Delivery
import MarmotPush
import PushModel
import Synchronization

/// Which wraps this process opens if several processes listen for one key at the same relays.
///
/// All of them receive every event; each opens the wraps whose ids fall to it. Wraps of other processes are
/// held in memory for half a minute, sealed as they came: if the other process turns out to have died or left
/// before it can have opened a wrap, the process that has its share then opens it. So a process that dies
/// delays its share but loses nothing; wraps that it opened in the seconds between its last renewal and its
/// end are opened twice (decision 0039).
final class WrapShare: Sendable {
    /// Tells an event from all others whose id fits, because the id speaks for all but the signature. Not by
    /// the id alone: signatures have not been checked yet, and a relay that repeats an event with a false
    /// signature would hide the genuine event of other relays.
    private struct Name: Hashable {
        let id: [UInt8]
        let signature: [UInt8]?
    }

    private struct Held {
        let item: WrapArrival
        let key: Digest16
        var name: Name { Name(id: item.event.id, signature: item.event.signature) }
        /// The process that it falls to; `nil`: not known yet.
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
        // Publishing the list is one more piece of work, which also falls to one member.
        publicKey = Digest16(high: 0x6C69_7374, low: 0)
    }

    /// Whether others may listen too.
    var isShared: Bool { membership != nil }

    /// Whether this process publishes the relay list for all that listen.
    var speaks: Bool {
        guard let membership else { return true }
        return membership.roster(of: group)?.worker(of: publicKey, at: membership.instant)?.isUs ?? false
    }

    /// Whether a subscription is in force at some relay. A process that hears nothing leaves its share to
    /// others.
    func listens(_ isListening: Bool) {
        if isListening { membership?.enter(group) } else { membership?.leave(group) }
    }

    /// Whether a wrap falls to us; else it is held.
    func falls(to item: WrapArrival) -> Bool {
        guard let membership else { return true }
        let now = membership.instant
        guard let key = Self.key(item.event) else { return true }
        let worker = membership.roster(of: group)?.worker(of: key, at: now)
        // A wrap whose id does not fit opens nowhere, so any process may report it.
        if worker?.isUs == true || !item.event.hasRightID { return true }
        state.withLock { state in hold(Held(item: item, key: key, worker: worker?.owner, at: now), &state) }
        return false
    }

    /// What falls to us since the members were last read.
    func takeUp() -> [WrapArrival] {
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
    ) -> [WrapArrival] {
        let ended = Dictionary(
            roster.ended(at: now).map { ($0.owner, $0.workedUntil) }, uniquingKeysWith: min)
        var ours: [WrapArrival] = []
        var kept: [Held] = []
        for var held in state.held {
            // The store lists dead members for longer than wraps are held.
            let isOpen = held.worker.map { worker in ended[worker].map { held.at >= $0 } ?? false } ?? true
            guard isOpen, let worker = roster.worker(of: held.key, at: now) else {
                kept.append(held)
                continue
            }
            if worker.isUs {
                // A separate share of the queue, because the relay's share belongs to its reader.
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
