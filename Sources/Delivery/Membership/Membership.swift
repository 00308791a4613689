package import PushModel
import Synchronization

/// The groups that this process belongs to, and their other members: all that processes on one store know
/// about each other.
///
/// Renewed with the lease, and at once when a group is entered or left.
package final class Membership: Sendable {
    private struct State {
        var groups: Set<GroupName> = [.relays]
        var rosters: [GroupName: Roster] = [:]
        /// Readings so far. Code that caches something derived from a roster asks whether this number is
        /// still the same.
        var readings = 0
        /// When the store was asked for these rosters.
        var askedAt: ContinuousClock.Instant
        /// The last sign that this process was not suspended.
        var awakeAt: ContinuousClock.Instant
        /// When a suspension was noticed, until the store has been asked again.
        var dazedAt: ContinuousClock.Instant?
    }

    private let state: Mutex<State>
    private let bell = Bell()
    private let store: any Enrolment
    private let limits: DeliveryLimits
    private let world: World
    private let journal: Journal

    package init(store: any Enrolment, limits: DeliveryLimits, world: World, journal: Journal) {
        self.store = store
        self.limits = limits
        self.world = world
        self.journal = journal
        let now = world.instant()
        state = Mutex(State(askedAt: now, awakeAt: now))
    }

    package func enter(_ group: GroupName) {
        if state.withLock({ $0.groups.insert(group).inserted }) { bell.ring() }
    }

    package func leave(_ group: GroupName) {
        let wasIn = state.withLock { state in
            state.rosters[group] = nil
            return state.groups.remove(group) != nil
        }
        if wasIn { bell.ring() }
    }

    /// Readings so far.
    package var readings: Int { state.withLock(\.readings) }

    /// What is known of a group; `nil` while we are not known to be in it, and after a suspension until the
    /// store has answered again, because others may have our share by then.
    package func roster(of group: GroupName) -> Roster? {
        let now = world.instant()
        return state.withLock { state in
            look(at: now, &state)
            guard let roster = state.rosters[group] else { return nil }
            return state.dazedAt != nil && !roster.isLone ? nil : roster
        }
    }

    /// The number of processes among which a common limit is divided; at least 1.
    package var relays: Int {
        let now = world.instant()
        return state.withLock { $0.rosters[.relays]?.count(at: now) ?? 1 }
    }

    /// A sign that this process runs.
    func tick() {
        let now = world.instant()
        if state.withLock({ look(at: now, &$0) }) { bell.ring() }
    }

    /// - Returns: whether this process turns out to have been suspended.
    @discardableResult
    private func look(at now: ContinuousClock.Instant, _ state: inout State) -> Bool {
        defer { state.awakeAt = max(state.awakeAt, now) }
        guard now - state.awakeAt > limits.aliveFor / 2 else { return false }
        state.dazedAt = now
        return true
    }

    /// The beat of the lease.
    func beat() { bell.ring() }

    /// The clock that rosters are read by.
    package var instant: ContinuousClock.Instant { world.instant() }

    /// Enrols whenever the bell rings, until cancelled.
    package func run() async {
        while !Task.isCancelled {
            await bell.wait()
            if Task.isCancelled { return }
            await renew()
        }
    }

    /// Enrols, and reads who else is there. A failure leaves what was known.
    package func renew() async {
        let groups = state.withLock(\.groups)
        let began = world.instant()
        do throws(StoreError) {
            let members = try await store.enrol(in: Array(groups), for: limits.aliveFor)
            let ended = world.instant()
            let byGroup = Dictionary(grouping: members, by: \.group)
            let mustAskAgain = state.withLock { state in
                look(at: ended, &state)
                // An answer that was long on its way must not replace a later one.
                guard began >= state.askedAt else { return state.dazedAt != nil }
                state.askedAt = began
                // Entering or leaving a group meanwhile has rung the bell again.
                for group in groups where state.groups.contains(group) {
                    state.rosters[group] = Roster(
                        byGroup[group] ?? [], asked: began, answered: ended, lease: limits.aliveFor)
                }
                state.readings += 1
                if let dazedAt = state.dazedAt, dazedAt <= began { state.dazedAt = nil }
                return state.dazedAt != nil
            }
            if mustAskAgain { bell.ring() }
        } catch {
            journal.note("group not renewed", [.code: ErrorCode(error)], level: .warning)
        }
    }
}
