import AdminIngress
import AtRest
import Delivery
import HTTPIngress
import PushModel
import ServiceLifecycle
import Synchronization
import WebClient

/// A relay: store, delivery, instances, listeners. `open` takes the store, `listen` the addresses, and the
/// services serve until a graceful stop.
///
/// What a configuration decides is made by one function (``make(_:replacing:)``) and put in force by another
/// (``adopt(_:)``): a start is a reload from nothing. Everything that `init` makes lives as long as the
/// process; ``ReloadRule`` names the parts of the configuration that it depends on.
final class Relay: Sendable {
    /// All that one configuration makes of a relay, whole, and not in force yet.
    private struct Wiring: Sendable {
        let configuration: RelayConfiguration
        let cache: CredentialCache
        let lanes: DeliveryService.Setup
        let instances: [any HostedInstance]
        let web: any WebFetch
        let ways: AlertWays
        /// Puts faces and certificates behind the listeners.
        let furnish: @Sendable () -> Void

        var publicKeys: [String: [String]] {
            Dictionary(instances.map { ($0.name.text, $0.publicKeys) }, uniquingKeysWith: { $1 })
        }
    }

    private let around: Surroundings
    private let store: OpenStore
    /// Of the outbox, for each app.
    private let share: AppShare
    private let delivery: DeliveryService
    private let instances: HostedInstances
    private let listeners: Listeners
    /// Of listeners' faces and of what instances fetch.
    private let web: CurrentWeb
    let alerts: AlertPort
    private let certificates: CertificateMonitor
    private let watch: RelayMonitor
    private let proofs: LaneProofs
    private let history: HistoryKeeper
    /// What became of the last reload.
    let reloads: ReloadMemory
    /// `nil` until the first one is in force, which is before `open` returns.
    private let inForce = Mutex<Wiring?>(nil)

    /// Opens the store and wires everything; nothing listens yet.
    static func open(
        _ configuration: RelayConfiguration, _ around: Surroundings
    ) async throws(CommandFailure) -> Relay {
        try FileChecks.refuseOpenSecrets(configuration)
        let share = AppShare(apps: configuration.apps.count)
        let store = try await OpenStore.open(
            configuration.store, limits: configuration.limits, synchronous: around.synchronous,
            world: around.world, journal: around.journal, services: around.hosting.messages,
            share: share, rotation: around.rotation,
            engine: around.engine)
        do throws(CommandFailure) {
            let relay = try Relay(configuration, store, share, around)
            // First, so that nothing is reported again that the earlier process has reported.
            await relay.alerts.inherit()
            relay.adopt(try relay.make(configuration, replacing: nil))
            return relay
        } catch {
            // What it would have owed is free at once.
            await store.close()
            throw error
        }
    }

    private init(
        _ configuration: RelayConfiguration, _ store: OpenStore, _ share: AppShare, _ around: Surroundings
    ) throws(CommandFailure) {
        (self.around, self.store, self.share) = (around, store, share)
        reloads = ReloadMemory(around.metrics)
        web = CurrentWeb(Self.web(configuration, around))
        let persistence =
            around.isRehearsal
            ? nil : AlertRecords(store.sealed, store.notes, state: configuration.state, around.world)
        alerts = AlertPort(
            ways: AlertWays(), journal: around.journal, metrics: around.metrics, world: around.world,
            persistence: persistence)
        certificates = CertificateMonitor(alerts, around.world)
        let (trail, custody) = (AttemptTrail(), CustodyTally())
        proofs = LaneProofs()
        let (refusals, events) = (
            RefusalRates(around.world), EventLog(around.journal, around.world)
        )
        let life = EventLog(around.journal, around.world)
        history = HistoryKeeper(
            store.sealed, world: around.world, journal: around.journal,
            told: { RegistrationLife.note($0, in: life) })
        let lastHour = FigureHistory(
            around.metrics, own: configuration.listeners.filter(\.isAdmin).map(\.name))
        delivery = DeliveryService(
            outbox: store.sealed, registry: store.sealed, limits: Self.limits(around.limits, configuration),
            world: around.world, journal: around.journal,
            observer: AlertWiring.observer(
                alerts, trail, custody, proofs, refusals, events, history, around.world))
        let beside = Neighbours()
        instances = HostedInstances(
            around.hosting,
            HostingContext(
                delivery: delivery, registry: store.sealed, web: web,
                webTrusting: { file in Self.web(configuration, around, trusting: file) },
                neighbours: { [beside] in beside.instances }, group: around.group,
                world: around.world, journal: around.journal, metrics: around.metrics, spans: around.spans,
                events: events, isRehearsal: around.isRehearsal))
        beside.watch(instances)
        store.sealed.news.hear { [beside] kind, space, digest in
            RegistrationLife.note(kind, space, digest, among: beside.instances, in: life)
        }
        watch = RelayMonitor(
            RelayMonitor.Subjects(
                delivery: delivery, store: store, instances: instances, custody: custody, proofs: proofs,
                refusals: refusals, lastHour: lastHour, journal: around.journal, freeBytes: around.freeBytes),
            alerts, configuration, limits: around.spans.watch, world: around.world)
        let admin = AdminListener(
            hosting: around.hosting, delivery: delivery, store: store, watch: watch, metrics: around.metrics,
            alerts: alerts,
            trail: trail, history: history, certificates: certificates, origins: OriginCount(around.world),
            reloads: reloads, lastHour: lastHour, process: ProcessFigures(around.world),
            startedAt: around.world.now(), codes: CodeSearch(store.sealed, around.world), world: around.world)
        listeners = try Listeners(configuration, admin: admin, alerts: alerts, around)
    }

    // MARK: From a configuration to what is in force

    /// Makes everything that a configuration decides. Nothing is in force yet, and all that can fail has been
    /// done when it returns.
    ///
    /// - Throws: `CommandFailure` that names what is at fault.
    private func make(
        _ configuration: RelayConfiguration, replacing old: Wiring?
    ) throws(CommandFailure) -> Wiring {
        var cache = Self.cache(replacing: old?.cache, for: configuration, around)
        let instances = try instances.make(configuration)
        let lanes = try DeliverySetup(configuration: configuration, around).make(&cache, for: instances)
        let web = Self.web(configuration, around)
        return Wiring(
            configuration: configuration, cache: cache, lanes: lanes, instances: instances, web: web,
            ways: try AlertWiring(configuration) { [around] file in
                file.map { Self.web(configuration, around, trusting: $0) } ?? web
            }.ways(around.world),
            furnish: try listeners.furnish(configuration, instances))
    }

    /// Puts it in force. Requests under way end as they began.
    private func adopt(_ wiring: Wiring) {
        web.adopt(wiring.web)
        // Before a lane can halt that this configuration makes.
        if inForce.withLock({ $0 != nil }) { alerts.reloaded() }
        proofs.adopt(
            Dictionary(
                wiring.lanes.lanes.map { ($0.name, ObjectIdentifier($0.credential)) },
                uniquingKeysWith: { $1 }))
        share.set(apps: wiring.configuration.apps.count)
        delivery.adopt(wiring.lanes)
        instances.adopt(wiring.instances)
        wiring.furnish()
        alerts.adopt(wiring.ways)
        watch.adopt(wiring.configuration)
        certificates.adopt(wiring.configuration)
        history.turn(on: wiring.configuration.keepsHistory)
        inForce.withLock { $0 = wiring }
        if !wiring.configuration.isSandbox, wiring.configuration.isKeyBesideStore {
            alerts.raise(.keyBesideDatabase)
        } else {
            alerts.clear(Alert.keyBesideDatabase.subject)
        }
        // Also one that the process before has told: its configuration went with it.
        alerts.clear(Alert.reloadRefused(ErrorCode("file")).subject)
    }

    /// Puts another configuration in force.
    ///
    /// - Throws: what is wrong; then the old one stays in force, whole.
    func reload(_ new: RelayConfiguration) throws {
        let old = inForce.withLock { $0 }
        if let old { try ReloadRule.check(old.configuration, new) }
        try FileChecks.refuseOpenSecrets(new)
        let wiring = try make(new, replacing: old)
        adopt(wiring)
        for (service, name) in wiring.cache.renewed {
            around.journal.note(
                "credential reloaded", [.service: service, .credential: ConfiguredText(name)])
        }
        reloads.note(.done, at: around.world.now())
        around.journal.note(
            "configuration reloaded", [.configuration: ConfiguredText(new.file ?? "sandbox")])
    }

    /// A configuration did not come into force: the former one stays, and the operator is told.
    func refuseReload(_ code: ErrorCode) {
        reloads.note(.refused(code), at: around.world.now())
        alerts.raise(.reloadRefused(code))
        around.journal.note("reload refused", [.code: code], level: .error)
    }

    /// A twentieth of the outbox for what one origin's pace puts off, so that no single origin fills it.
    private static func limits(
        _ limits: DeliveryLimits, _ configuration: RelayConfiguration
    ) -> DeliveryLimits {
        var limits = limits
        limits.pacedPushes = min(limits.pacedPushes, max(1, configuration.limits.outboxRows / 20))
        return limits
    }

    private static func cache(
        replacing old: CredentialCache?, for configuration: RelayConfiguration, _ around: Surroundings
    ) -> CredentialCache {
        CredentialCache(
            replacing: old, proxy: configuration.proxy, world: around.world, journal: around.journal
        ) { authority in
            // The token endpoint may stand behind an authority of the configuration's own.
            web(configuration, around, trusting: authority)
        }
    }

    /// - Parameter authority: a file of PEM that is trusted beside what this machine trusts.
    private static func web(
        _ configuration: RelayConfiguration, _ around: Surroundings, trusting authority: String? = nil
    ) -> any WebFetch {
        var options = options(configuration, around.web)
        if let authority { options.extraAuthorities.append(authority) }
        return HTTPSFetch(options, group: around.group, world: around.world)
    }

    static func options(_ configuration: RelayConfiguration, _ base: WebOptions) -> WebOptions {
        var options = base
        if let proxy = configuration.proxy {
            options.proxy = WebOptions.Proxy(host: proxy.host, port: proxy.port)
        }
        return options
    }

    // MARK: Running

    /// Takes every listener's address.
    ///
    /// - Returns: listener → base URL.
    /// - Throws: `CommandFailure(.unavailable)` that names the listener.
    func listen() async throws(CommandFailure) -> [String: String] {
        guard let configuration = inForce.withLock({ $0?.configuration }) else { return [:] }
        return try await listeners.listen(configuration)
    }

    /// Of instances, by name.
    var publicKeys: [String: [String]] { inForce.withLock { $0?.publicKeys ?? [:] } }
    /// The instances in force.
    var hosted: [any HostedInstance] { instances.all }
    func lanes() -> [LaneSnapshot] { delivery.snapshot() }

    /// Store first, then delivery, then listeners: a stop runs in the reverse order, so nothing is taken in
    /// that nobody would send.
    var services: [any Service] {
        var services: [any Service] = []
        services += store.housekeeping
        if let seals = store.seals { services.append(seals) }
        services.append(alerts)
        services.append(certificates)
        services.append(history)
        services.append(delivery)
        services.append(watch)
        services.append(instances)
        services += listeners.listeners
        services.append(Parting(instances))
        return services
    }

    /// Closes the store; after the services.
    func close() async { await store.close() }
}
