import AdminIngress
import AtRest
import Delivery
import PushModel
import ServiceLifecycle
import Synchronization

/// Checks every few seconds what an operator must know without asking: the store, what is owed and for how
/// long, the lanes, custody that has ended, inbox relays. It raises and clears alerts, and its last results
/// answer requests for metrics and health. It also takes the samples of the dashboard's graphs.
///
/// So alerts do not depend on requests, and answers do not depend on the store: one loop asks the store, and
/// another judges it, which also sees that the first one still waits (decision 0058).
final class RelayMonitor: Service, Sendable {
    /// What share of the outbox's bound an operator must hear of; also the doctor's.
    static let fullPercent = 80

    /// What it looks at.
    struct Subjects: Sendable {
        let delivery: DeliveryService
        let store: OpenStore
        let instances: HostedInstances
        let custody: CustodyTally
        let proofs: LaneProofs
        let refusals: RefusalRates
        let lastHour: FigureHistory
        let journal: Journal
        /// At a path; `nil`: the system does not tell.
        let freeBytes: @Sendable (String) -> Int64?
    }

    /// What the store said.
    struct Look: Sendable {
        let load: OutboxLoad
        /// When the push that has been owed longest was accepted.
        let oldest: UnixTime?
        /// Records that cannot be read, and are none.
        let recordsAside: Int
    }

    private struct State {
        /// The store's last word; `nil` before the first, and while it has none but a fault.
        var look: Look?
        var fault: StoreError.Code?
        /// When it was asked what it has not answered yet.
        var askedAt: ContinuousClock.Instant?
        /// Since when an instance has heard nobody, and since when it has heard somebody.
        var unheardSince: [ConfiguredName: ContinuousClock.Instant] = [:]
        var heardSince: [ConfiguredName: ContinuousClock.Instant] = [:]
        var listeners: Set<ConfiguredName> = []
        /// Where the store and the state lie.
        var disks: [String]
        var contacts = LaneContacts()
        var limits: LimitsConfiguration
        var overdueAfter: Duration?
    }

    private let subjects: Subjects
    private let alerts: AlertPort
    private let limits: MonitorLimits
    private let world: World
    private let state: Mutex<State>

    init(
        _ subjects: Subjects, _ alerts: AlertPort, _ configuration: RelayConfiguration, limits: MonitorLimits,
        world: World
    ) {
        self.subjects = subjects
        self.alerts = alerts
        self.limits = limits
        self.world = world
        state = Mutex(
            State(
                disks: DiskSpace.places(of: configuration), limits: configuration.limits,
                overdueAfter: configuration.alerts.overdueAfter))
    }

    /// Follows a reload. The outbox's bound needs a restart, so it stays.
    func adopt(_ configuration: RelayConfiguration) {
        state.withLock { state in
            state.overdueAfter = configuration.alerts.overdueAfter
            state.listeners = Set(configuration.listeners.map(\.name))
        }
    }

    // MARK: What it knows

    /// Why the store takes no commits, or does not answer; `nil` while it does.
    var storeFault: StoreError.Code? {
        // A disk that is full or read-only can be read all the same.
        if let fault = subjects.delivery.storeFault { return fault }
        return isStoreSilent ? .unavailable : state.withLock(\.fault)
    }

    /// Whether the store has owed an answer for so long that nobody should wait for one.
    var isStoreSilent: Bool {
        let now = world.instant()
        return state.withLock { $0.askedAt.map { now - $0 >= limits.patience } ?? false }
    }

    /// The store's last answer; `nil` while it does not answer, because an outdated figure must not be shown.
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
            let aside = try await subjects.store.sealed.recordsAside()
            answer = .success(Look(load: load, oldest: oldest?.acceptedAt, recordsAside: aside))
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

    /// Raises what holds and clears what is known to be over. Lanes also report changes at once; this loop
    /// makes sure that nothing is missed and that no alert stays for ever.
    private func judge() async {
        subjects.refusals.tell(subjects.journal)
        subjects.lastHour.note(at: world.instant(), owed: look?.load.rows) { ProcessMemory.pages?.resident }
        // Read before the alerts that it is compared with: alerts that are raised meanwhile are left to the
        // next look.
        let standing = alerts.raised
        let raised = Set(standing.map(\.subject))
        awaitProofs(of: raised)
        let lanes = subjects.delivery.snapshot()
        let instances = subjects.instances.all
        let silent = await silent(among: instances)
        let holding =
            troubled(lanes) + ended() + troubled(instances, silent) + storeTroubles() + diskTroubles(raised)
        for alert in holding where !(alert.isOfLane && raised.contains(alert.subject)) { alerts.raise(alert) }
        let held = Set(holding.map(\.subject))
        let evidence = Evidence(lanes: lanes, instances: instances, silent: silent)
        for alert in standing where !held.contains(alert.subject) && isOver(alert, by: evidence) {
            alerts.clear(alert.subject)
        }
    }

    private func awaitProofs(of raised: Set<Alert.Subject>) {
        let lanes = raised.filter { $0.kind == .laneHalted || $0.kind == .laneUnanswered }.map(\.name)
        let named = Set(lanes.compactMap { LaneName($0) })
        if named.isEmpty { subjects.proofs.rest() } else { subjects.proofs.attend(named) }
    }

    private func storeTroubles() -> [Alert] {
        let refused = subjects.delivery.unsettled.map { Alert.outcomesRefused($0.code, $0.count) }
        let fault = storeFault.map { Alert.storeFailing($0) } ?? refused
        let aside = look?.recordsAside ?? 0
        return (fault.map { [$0] } ?? []) + (look.map { owed($0) } ?? [])
            + (aside > 0 ? [.recordsSetAside(aside)] : [])
    }

    /// Only before the disk is full: a full disk has an alert of its own.
    private func diskTroubles(_ raised: Set<Alert.Subject>) -> [Alert] {
        let places = state.withLock(\.disks)
        guard let free = places.compactMap(subjects.freeBytes).min() else { return [] }
        let alert = Alert.diskLow(mebibytes: Int(free >> 20))
        let bound = raised.contains(alert.subject) ? DiskSpace.enough : DiskSpace.low
        return free < bound ? [alert] : []
    }

    private func troubled(_ lanes: [LaneSnapshot]) -> [Alert] {
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

    private func silent(among instances: [any HostedInstance]) async -> Set<ConfiguredName> {
        var silent: Set<ConfiguredName> = []
        for instance in instances where await instance.hearsNobody() { silent.insert(instance.name) }
        return silent
    }

    private func troubled(_ instances: [any HostedInstance], _ silent: Set<ConfiguredName>) -> [Alert] {
        let now = world.instant()
        let unheard = state.withLock { state -> [Alert] in
            func since(
                _ names: some Sequence<ConfiguredName>, _ before: [ConfiguredName: ContinuousClock.Instant]
            ) -> [ConfiguredName: ContinuousClock.Instant] {
                Dictionary(names.map { ($0, before[$0] ?? now) }, uniquingKeysWith: { $1 })
            }
            state.unheardSince = since(silent, state.unheardSince)
            let heard = instances.map(\.name).filter { !silent.contains($0) }
            state.heardSince = since(heard, state.heardSince)
            return state.unheardSince.filter { now - $0.value >= limits.unheardAfter }
                .map { .instanceUnheard($0.key) }
        }
        return unheard + instances.flatMap(\.troubles)
    }

    // MARK: What is over

    /// The data for the decision.
    private struct Evidence {
        let lanes: [LaneSnapshot]
        let instances: [any HostedInstance]
        let silent: Set<ConfiguredName>

        func lane(_ name: String) -> LaneSnapshot? { lanes.first { $0.lane.description == name } }
        /// By the name before the first slash.
        func instance(_ name: String) -> (any HostedInstance)? {
            instances.first { $0.name.text[...] == name.prefix { $0 != "/" } }
        }
    }

    /// Whether a trouble that was reported and is not seen now is known to be over, and was not just
    /// forgotten in a reload or restart. A trouble of something that the configuration no longer has is over
    /// too.
    private func isOver(_ alert: StandingAlert, by evidence: Evidence) -> Bool {
        let name = alert.subject.name
        switch alert.subject.kind {
        case .laneHalted, .laneUnanswered, .laneUnreachable:
            guard let lane = evidence.lane(name) else { return true }
            return isOver(alert.subject.kind, of: lane)
        case .custodyEnded, .messagesMissed, .registrationExpired, .registrationRefused, .originStaleList:
            // They hold for an hour, and only the process that met them knows this hour.
            return !alert.isInherited || world.now().since(alert.toldAt) >= limits.endedFor
        case .instanceUnheard:
            return evidence.instance(name).map { !evidence.silent.contains($0.name) } ?? true
        case .watchesRefused:
            guard let instance = evidence.instance(name) else { return true }
            let since = state.withLock { $0.heardSince[instance.name] }
            return since.map { world.instant() - $0 >= limits.calmFor } ?? false
        case .instanceRefused, .answersRefused, .gatewayFailing:
            return evidence.instance(name).map { $0.isProven(over: alert.subject) } ?? true
        case .storeFailing, .outboxFilling, .pushOverdue, .recordsSetAside: return look != nil
        case .diskLow: return true
        case .doorStrained: return !state.withLock { $0.listeners.contains { $0.text == name } }
        // Reported by the parts that know: the certificate watch, the reload, the delivery core.
        case .certificateExpiring, .keyBesideDatabase, .pushesSetAside, .clockDoubted, .reloadRefused, .muted:
            return false
        }
    }

    private func isOver(_ kind: Alert.Kind, of lane: LaneSnapshot) -> Bool {
        let owes = lane.inMemory + lane.inFlight + lane.parked
        switch kind {
        case .laneUnreachable: return state.withLock { $0.contacts.isOpen(lane) }
        // A service to which nothing is owed is not waited for.
        case .laneUnanswered: return subjects.proofs.hasAnswered(lane.lane) || look != nil && owes == 0
        default: return subjects.proofs.hasAccepted(lane.lane, isIdle: look != nil && owes == 0)
        }
    }
}

extension Alert {
    /// Reported by the lane itself, with its cause.
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
