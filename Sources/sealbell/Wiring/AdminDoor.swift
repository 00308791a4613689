import AdminIngress
import AtRest
import Delivery
import HTTPIngress
import PushModel
import Synchronization
import ZulipPush

/// The admin listener's face: metrics, health, the state of the lanes.
struct AdminDoor: Sendable {
    /// What share of the outbox's bound an operator must hear of.
    private static let fullPercent = 80

    let delivery: DeliveryService
    let store: OpenStore
    let nostr: NostrDoors
    let metrics: PrometheusMetrics
    let alerts: AlertPort
    let trail: AttemptTrail
    let certificates: CertificateWatch
    let origins: OriginCount
    let outboxRows: Int
    let startedAt: UnixTime
    let world: World

    func face(
        _ listener: ListenerConfiguration, of configuration: RelayConfiguration
    ) throws(CommandFailure) -> any HTTPFace {
        var token: Secret?
        if case .admin(let file?) = listener.purpose { token = try CredentialShelf.read(file).trimmed }
        let instances = DeskInstances(configuration, store.sealed, world: world)
        let calls =
            OriginsDesk(instances).calls
            + WhyDesk(trail: trail, store: store, startedAt: startedAt).calls
            + TrialDesk(configuration: configuration, delivery: delivery, world: world).calls
            + (store.seals.map { SealKeyDesk($0).calls } ?? [])
            + ClockDesk(delivery.clock).calls
            + RealmDesk(instances: instances).calls
            + ForgetDesk(instances: instances, configuration: configuration, registry: store.sealed).calls
        return AdminFace(
            listener.name, token: token, metrics: metrics, samples: samples, checks: checks,
            status: { await status(instances) },
            calls: calls, world: world)
    }

    private func status(_ instances: DeskInstances) async -> StatusReport {
        let lanes = delivery.snapshot().map { lane in
            LaneReport(
                lane.lane, Self.state(of: lane),
                inMemory: lane.inMemory, parked: lane.parked, inFlight: lane.inFlight, reason: lane.reason)
        }
        let load = await load()
        var report = StatusReport(
            version: NoteCode("0.1.0"), startedAt: startedAt, lanes: lanes, outboxRows: load?.rows ?? 0,
            outboxBytes: load?.bytes ?? 0)
        // A store that fails has its alert; the page shows the rest.
        report.oldestAt = (try? await store.lookup.oldest())?.acceptedAt
        report.origins = await origins.count(instances)
        report.alerts = alerts.raised
        report.certificates = certificates.days().map { CertificateReport($0.listener, days: $0.days) }
        return report
    }

    private static func state(of lane: LaneSnapshot) -> LaneReport.State {
        if lane.isHalted { return .halted }
        if lane.isUnanswered { return .unanswered }
        return lane.parked > 0 ? .waiting : .open
    }

    private func samples() async -> [MetricSample] {
        let load = await load()
        return [
            MetricSample("sealbell_outbox_rows", value: Double(load?.rows ?? 0)),
            MetricSample("sealbell_outbox_bytes", value: Double(load?.bytes ?? 0)),
            MetricSample("sealbell_pushes_set_aside", value: Double(load?.aside ?? 0)),
            MetricSample(
                "sealbell_clock_ahead_seconds", value: Double(delivery.clock.now.ahead.components.seconds)),
            MetricSample("sealbell_settle_backlog", value: Double(delivery.settleBacklog)),
            MetricSample("process_resident_memory_bytes", value: Double(ProcessMemory.resident()))
        ] + laneSamples
    }

    /// What each lane's provider has counted. The only label is the lane's configured name.
    private var laneSamples: [MetricSample] {
        delivery.snapshot().flatMap { lane in
            let labels = [("lane", lane.lane.description)]
            return lane.figures.map {
                MetricSample($0.name, labels: labels, value: Double($0.value), isTotal: $0.isTotal)
            }
        }
    }

    /// Ready: the store takes commits, and the outbox has room. A halted lane is an alert, not unreadiness,
    /// for the other apps go on.
    private var checks: [HealthCheck] {
        [
            HealthCheck("store") { await load() != nil && delivery.storeFault == nil },
            HealthCheck("outbox") {
                guard let load = await load() else { return false }
                return load.rows < outboxRows
            },
            // Without any inbox relay an instance hears nobody; it goes on trying.
            HealthCheck("nostr") { await nostr.isListening() }
        ]
    }

    private func load() async -> OutboxLoad? {
        do throws(StoreError) {
            let load = try await store.sealed.load()
            // A disk that is full or read-only can be read all the same.
            if let fault = delivery.storeFault {
                alerts.raise(.storeFailing(fault))
            } else {
                alerts.clear(Alert.storeFailing(.unavailable).subject)
            }
            let percent = load.rows * 100 / max(outboxRows, 1)
            if percent >= Self.fullPercent {
                alerts.raise(.outboxFilling(percent: percent))
            } else {
                alerts.clear(Alert.outboxFilling(percent: percent).subject)
            }
            return load
        } catch {
            alerts.raise(.storeFailing(error.code))
            return nil
        }
    }
}

/// How many origins have signed up, counted at most once a minute: the dashboard asks every five seconds, and
/// each origin's record is opened for it.
final class OriginCount: Sendable {
    private static let life = Duration.seconds(60)
    private let world: World
    private let last = Mutex<(count: Int, until: ContinuousClock.Instant)?>(nil)

    init(_ world: World) { self.world = world }

    /// `nil` when the store does not tell.
    func count(_ instances: DeskInstances) async -> Int? {
        let now = world.instant()
        if let last = last.withLock({ $0 }), last.until > now { return last.count }
        var count = 0
        do throws(StoreError) {
            for servers in instances.servers { count += try await servers.count() }
        } catch { return nil }
        last.withLock { $0 = (count, now + Self.life) }
        return count
    }
}
