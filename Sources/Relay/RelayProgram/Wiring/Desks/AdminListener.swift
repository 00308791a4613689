import AdminIngress
import AtRest
import Delivery
import HTTPIngress
import PushModel
import Synchronization

/// The admin listener's face: metrics, health, the state of the lanes.
struct AdminListener: Sendable {
    let hosting: Hosting
    let delivery: DeliveryService
    let store: OpenStore
    let watch: RelayMonitor
    let metrics: PrometheusMetrics
    let alerts: AlertPort
    let trail: AttemptTrail
    let history: HistoryKeeper
    let certificates: CertificateMonitor
    let origins: OriginCount
    let reloads: ReloadMemory
    let lastHour: FigureHistory
    let process: ProcessFigures
    let startedAt: UnixTime
    let codes: CodeSearch
    let world: World

    func face(
        _ listener: ListenerConfiguration, of configuration: RelayConfiguration,
        _ hosted: [any HostedInstance], beside listeners: [HTTPListener]
    ) throws(CommandFailure) -> any HTTPFace {
        var token: Secret?
        if case .admin(let file?) = listener.purpose { token = try CredentialCache.read(file).trimmed }
        let instances = DeskInstances(hosted)
        let calls =
            OriginsDesk(instances).calls
            + KeysDesk(instances: instances).calls
            + WhyDesk(trail: trail, store: store, startedAt: startedAt).calls
            + HistoryDesk(
                instances: instances, configuration: configuration, store: store, history: history,
                codes: codes
            ).calls
            + TestPushDesk(hosting: hosting, configuration: configuration, delivery: delivery, world: world)
            .calls
            + (store.seals.map { SealKeyDesk($0).calls } ?? [])
            + ClockDesk(delivery.clock).calls
            + ForgetDesk(instances: instances, configuration: configuration, registry: store.sealed).calls
            + hosting.protocols.flatMap { $0.calls(instances) }
        return AdminFace(
            listener.name, token: token, metrics: metrics, samples: samples, checks: checks,
            roles: Self.roles(hosted), status: { await status(instances, listeners) },
            calls: calls, world: world)
    }

    private func status(_ instances: DeskInstances, _ listeners: [HTTPListener]) async -> StatusReport {
        let standing = alerts.raised
        let faults = trail.latestFaults(Self.refusalsLooked)
        let lanes = delivery.snapshot().map { lane in
            let trouble = Alert.laneUnreachable(lane.lane).subject
            let isUnreachable = standing.contains { $0.subject == trouble }
            var report = LaneReport(
                lane.lane, Self.state(of: lane, isUnreachable: isUnreachable), inMemory: lane.inMemory,
                parked: lane.parked, inFlight: lane.inFlight, reason: lane.reason)
            report.connections = lane.connections
            report.reasonAt = faults.first { $0.lane == lane.lane && $0.reason == lane.reason }?.answeredAt
            return report
        }
        // A disk that hangs answers nobody, and just then an operator looks: the rest is shown without it.
        let asks = !watch.isStoreSilent
        let load = asks ? await load() : nil
        var report = StatusReport(
            version: Release.code, startedAt: startedAt, lanes: lanes, outboxRows: load?.rows,
            outboxBytes: load?.bytes)
        // A store that fails has its alert; the page shows the rest.
        report.oldestAt = asks ? (try? await store.lookup.oldest())?.acceptedAt : nil
        report.origins = asks ? await origins.count(instances) : nil
        report.alerts = standing
        report.certificates = certificates.days().map { CertificateReport($0.listener, days: $0.days) }
        report.unreadClients = listeners.filter { $0.unreadClients > 0 }.map { ($0.name, $0.unreadClients) }
        report.reload = reloads.last
        report.refusals = Array(faults.prefix(Self.refusalsShown))
        report.ingresses = await instances.ingresses()
        (report.history, report.instant) = (lastHour.samples, world.instant())
        return report
    }

    /// As many as a person reads.
    private static let refusalsShown = 20
    /// Among these a lane's last refusal is looked for; it is copied under a lock that each answer takes.
    private static let refusalsLooked = 500

    private static func state(of lane: LaneSnapshot, isUnreachable: Bool) -> LaneReport.State {
        if lane.isHalted { return .halted }
        if lane.isUnanswered { return .unanswered }
        if isUnreachable { return .unreachable }
        return lane.parked > 0 ? .waiting : lane.contact
    }

    private func samples() async -> [MetricSample] {
        [
            MetricSample(
                "sealbell_clock_ahead_seconds", value: Double(delivery.clock.now.ahead.components.seconds)),
            MetricSample("sealbell_settle_backlog", value: Double(delivery.settleBacklog))
        ] + owedSamples + process.samples + laneSamples
    }

    /// As the watch saw it last; none while the store does not say.
    private var owedSamples: [MetricSample] {
        guard let look = watch.look else { return [] }
        let age = look.oldest.map { max(0, world.now().since($0).wholeMilliseconds) } ?? 0
        return [
            MetricSample("sealbell_outbox_rows", value: Double(look.load.rows)),
            MetricSample("sealbell_outbox_bytes", value: Double(look.load.bytes)),
            MetricSample("sealbell_outbox_oldest_seconds", value: Double(age) / 1_000),
            MetricSample("sealbell_pushes_set_aside", value: Double(look.load.aside)),
            MetricSample("sealbell_records_set_aside", value: Double(look.recordsAside))
        ]
    }

    /// What each lane's provider has counted. The only label is the lane's configured name.
    private var laneSamples: [MetricSample] {
        delivery.snapshot().flatMap { lane in
            let labels = [("lane", lane.lane.description)]
            let held = ProviderFigure.gauge("sealbell_lane_destinations_held", lane.heldDestinations)
            let waiting = ProviderFigure.gauge("sealbell_lane_addresses_waiting", lane.waitingAddresses)
            return (lane.figures + [held, waiting]).map {
                MetricSample($0.name, labels: labels, value: Double($0.value), isTotal: $0.isTotal)
            }
        }
    }

    /// The checks that every role with durable pushes depends on: the store takes commits, and the outbox has
    /// room. A halted lane is an alert, not unreadiness, because the other apps go on.
    private var checks: [HealthCheck] {
        [
            HealthCheck("store") { watch.isStoreWell },
            HealthCheck("outbox") { watch.hasRoom }
        ]
    }

    private static func roles(_ instances: [any HostedInstance]) -> [RoleCheck] {
        instances.map { instance in
            RoleCheck(instance.name, needsChecks: instance.needsStore) { await instance.isReady() }
        }
    }

    /// Asked of the store itself, because the viewer wants the present state; `nil` when it does not answer.
    private func load() async -> OutboxLoad? {
        // Why it does not has its alert.
        try? await store.sealed.load()
    }
}

/// How many origins have signed up. Each origin's record is opened for it, and an open dashboard asks again
/// and again: so where there are many, they are counted at most once a minute.
final class OriginCount: Sendable {
    private static let life = Duration.seconds(60)
    /// From here on a count is kept. A store reads so many records in milliseconds.
    static let many = 500
    private let world: World
    private let last = Mutex<(count: Int, until: ContinuousClock.Instant)?>(nil)

    init(_ world: World) { self.world = world }

    /// `nil` when the store does not tell.
    func count(_ instances: DeskInstances) async -> Int? {
        let now = world.instant()
        if let last = last.withLock({ $0 }), last.until > now { return last.count }
        var count = 0
        do throws(StoreError) {
            for control in instances.controls { count += try await control.count() }
        } catch { return nil }
        last.withLock { $0 = count < Self.many ? nil : (count, now + Self.life) }
        return count
    }
}
