import AdminIngress
import AtRest
import Delivery
import PushModel
import ServiceLifecycle
import Synchronization

/// Looks every few seconds at what an operator must know without asking: the store, what is owed and for how
/// long, the lanes, custody that has ended, inbox relays. What it sees raises and clears alerts, and what it
/// saw last answers anyone who asks for metrics or health.
///
/// So an alert hangs on nobody's asking, and an answer on no store: the store is asked by one loop, and
/// judged by another, which also sees that the first one still waits (decision 0058).
final class RelayWatch: Service, Sendable {
    /// What share of the outbox's bound an operator must hear of; also the doctor's.
    static let fullPercent = 80

    /// What it looks at.
    struct Subjects: Sendable {
        let delivery: DeliveryService
        let store: OpenStore
        let instances: HostedInstances
        let custody: CustodyTally
    }

    /// What the store said.
    struct Look: Sendable {
        let load: OutboxLoad
        /// When the push that has been owed longest was accepted.
        let oldest: UnixTime?
    }

    private struct State {
        /// The store's last word; `nil` before the first, and while it has none but a fault.
        var look: Look?
        var fault: StoreError.Code?
        /// When it was asked what it has not answered yet.
        var askedAt: ContinuousClock.Instant?
        /// Since when an instance hears nobody.
        var unheardSince: [ConfiguredName: ContinuousClock.Instant] = [:]
        var contacts = LaneContacts()
        var limits: LimitsConfiguration
        var overdueAfter: Duration?
    }

    private let subjects: Subjects
    private let alerts: AlertPort
    private let limits: WatchLimits
    private let world: World
    private let state: Mutex<State>

    init(
        _ subjects: Subjects, _ alerts: AlertPort, _ configuration: RelayConfiguration, limits: WatchLimits,
        world: World
    ) {
        self.subjects = subjects
        self.alerts = alerts
        self.limits = limits
        self.world = world
        state = Mutex(
            State(limits: configuration.limits, overdueAfter: configuration.alerts.overdueAfter))
    }

    /// Follows a reload. The outbox's bound needs a restart, so it stays.
    func adopt(_ configuration: RelayConfiguration) {
        state.withLock { $0.overdueAfter = configuration.alerts.overdueAfter }
    }

    // MARK: What it knows

    /// Why the store takes no commits, or does not answer; `nil` while it does.
    var storeFault: StoreError.Code? {
        // A disk that is full or read-only can be read all the same.
        if let fault = subjects.delivery.storeFault { return fault }
        let now = world.instant()
        return state.withLock { state in
            if let asked = state.askedAt, now - asked >= limits.patience { return .unavailable }
            return state.fault
        }
    }

    /// What the store said last; `nil` while it does not say, because a figure that nobody knows is none.
    var look: Look? { storeFault == nil ? state.withLock(\.look) : nil }

    /// Whether the store is known to take commits, outcomes of pushes too.
    var isStoreWell: Bool { look != nil && subjects.delivery.unsettled == nil }

    /// Whether the outbox is known to have room.
    var hasRoom: Bool { look.map { percent($0.load) < 100 } ?? false }

    /// Of the outbox's bound, by rows or by bytes, whichever is fuller.
    private func percent(_ load: OutboxLoad) -> Int {
        let bounds = state.withLock(\.limits)
        return max(
            load.rows * 100 / max(bounds.outboxRows, 1),
            Int(Int64(load.bytes) * 100 / max(bounds.outboxBytes, 1)))
    }

    // MARK: Looking

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Void.self) { loops in
                loops.addTask { await self.repeatedly { await self.ask() } }
                loops.addTask { await self.repeatedly { await self.judge() } }
            }
        }
    }

    private func repeatedly(_ look: () async -> Void) async {
        while !Task.isCancelled {
            await look()
            // The sleep ends early only by cancellation, which ends the watch.
            do { try await world.sleep(world.instant() + limits.every) } catch { return }
        }
    }

    /// Asks the store.
    private func ask() async {
        let began = world.instant()
        state.withLock { $0.askedAt = began }
        let answer: Result<Look, StoreError>
        do throws(StoreError) {
            let load = try await subjects.store.sealed.load()
            let oldest = try await subjects.store.lookup.oldest()
            answer = .success(Look(load: load, oldest: oldest?.acceptedAt))
        } catch {
            answer = .failure(error)
        }
        state.withLock { state in
            state.askedAt = nil
            switch answer {
            case .success(let look): (state.look, state.fault) = (look, nil)
            case .failure(let error): (state.look, state.fault) = (nil, error.code)
            }
        }
    }

    // MARK: Judging

    /// Raises what holds and clears what does not. Lanes tell of themselves at once too; here nothing is
    /// missed, and nothing stands for good, whatever has come between.
    private func judge() async {
        // Before what it is compared with: what is raised meanwhile is left to the next look.
        let raised = Set(alerts.raised.map(\.subject))
        var holding = lanes() + ended() + (await instances())
        var judged: Set<Alert.Kind> = [
            .laneHalted, .laneUnanswered, .laneUnreachable, .custodyEnded, .instanceUnheard, .instanceRefused,
            .watchesRefused, .messagesMissed, .answersRefused, .gatewayFailing, .storeFailing
        ]
        if let fault = storeFault {
            holding.append(.storeFailing(fault))
        } else if let unsettled = subjects.delivery.unsettled {
            holding.append(.outcomesRefused(unsettled.code, unsettled.count))
        }
        if let look {
            judged.formUnion([.outboxFilling, .pushOverdue])
            holding += owed(look)
        }
        for alert in holding where !(alert.isOfLane && raised.contains(alert.subject)) { alerts.raise(alert) }
        let subjects = Set(holding.map(\.subject))
        for subject in raised where judged.contains(subject.kind) && !subjects.contains(subject) {
            alerts.clear(subject)
        }
    }

    private func lanes() -> [Alert] {
        let lanes = subjects.delivery.snapshot()
        let now = world.instant()
        let unreachable = state.withLock { $0.contacts.look(lanes, after: limits.unreachableAfter, at: now) }
        return unreachable.map { Alert.laneUnreachable($0) }
            + lanes.flatMap { lane in
                let reason = lane.reason ?? .notReached
                return (lane.isHalted ? [Alert.laneHalted(lane.lane, reason)] : [])
                    + (lane.isUnanswered ? [Alert.laneUnanswered(lane.lane, reason)] : [])
            }
    }

    private func ended() -> [Alert] {
        subjects.custody.recent(within: limits.endedFor, at: world.instant())
            .map { .custodyEnded($0.lane, $0.count) }
    }

    private func owed(_ look: Look) -> [Alert] {
        var alerts: [Alert] = []
        let percent = percent(look.load)
        if percent >= Self.fullPercent { alerts.append(.outboxFilling(percent: percent)) }
        if let bound = state.withLock(\.overdueAfter), let oldest = look.oldest {
            let age = world.now().since(oldest)
            if age >= bound { alerts.append(.pushOverdue(minutes: Int(age.components.seconds / 60))) }
        }
        return alerts
    }

    private func instances() async -> [Alert] {
        let all = subjects.instances.all
        var silent: [ConfiguredName] = []
        for instance in all where await instance.hearsNobody() { silent.append(instance.name) }
        let now = world.instant()
        let unheard = state.withLock { state -> [Alert] in
            var since: [ConfiguredName: ContinuousClock.Instant] = [:]
            for name in silent { since[name] = state.unheardSince[name] ?? now }
            state.unheardSince = since
            return since.filter { now - $0.value >= limits.unheardAfter }.map { .instanceUnheard($0.key) }
        }
        return unheard + all.flatMap(\.troubles)
    }
}

extension Alert {
    /// Told by the lane itself, with the word that caused it.
    fileprivate var isOfLane: Bool {
        switch self {
        case .laneHalted, .laneUnanswered: true
        default: false
        }
    }
}

/// Pushes whose custody has ended, by lane, for as long as an operator should hear of them. It holds as many
/// lanes as configurations name.
final class CustodyTally: Sendable {
    private let ended = Mutex<[LaneName: (count: Int, last: ContinuousClock.Instant)]>([:])

    func note(_ lane: LaneName, _ count: Int, at now: ContinuousClock.Instant) {
        guard count > 0 else { return }
        ended.withLock { $0[lane] = (($0[lane]?.count ?? 0) + count, now) }
    }

    /// Lanes in which some ended within that span, and how many have since there were none for so long.
    func recent(within span: Duration, at now: ContinuousClock.Instant) -> [(lane: LaneName, count: Int)] {
        ended.withLock { ended in
            ended = ended.filter { now - $0.value.last < span }
            return ended.map { ($0.key, $0.value.count) }
        }
    }
}
