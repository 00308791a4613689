import AdminIngress
import AtRest
import Delivery
import HTTPIngress
import NIOCore
import PushModel
import ServiceLifecycle
import Synchronization
import WebClient

/// A relay, wired: store, delivery, doors. `open` takes the addresses; `run` serves until a graceful stop.
final class Relay: Sendable {
    /// What a reload exchanges.
    private struct Standing: Sendable {
        var configuration: RelayConfiguration
        var shelf: CredentialShelf
        var publicKeys: [String: [String]]
    }

    private let store: OpenStore
    /// Of the outbox, for each app.
    private let share: AppShare
    private let delivery: DeliveryService
    private let listeners: [HTTPListener]
    private let nostr: NostrDoors
    private let standing: Mutex<Standing>
    private let doors: @Sendable (RelayConfiguration) -> Doors
    private let planning: @Sendable (RelayConfiguration) -> DeliveryPlanning
    private let makeShelf: @Sendable (CredentialShelf?, RelayConfiguration) -> CredentialShelf
    /// Of listeners' faces and of Nostr relays' documents.
    private let web: CurrentWeb
    private let makeWeb: @Sendable (RelayConfiguration) -> any WebFetch
    private let world: World
    private let journal: Journal
    private let alerts: AlertPort
    private let certificates: CertificateWatch
    private let watch: RelayWatch
    /// What became of the last reload.
    let reloads: ReloadMemory
    private let makeWays: @Sendable (RelayConfiguration) throws(CommandFailure) -> AlertWays

    /// What is the same before and after a reload.
    struct Surroundings: Sendable {
        var group: any EventLoopGroup
        var world: World
        var journal: Journal
        var metrics: PrometheusMetrics
        var limits = DeliveryLimits()
        var rotation = SealKeyRotation.Limits()
        var spans = RelaySpans()
        /// For the proof that the proof can fail.
        var synchronous: Synchronous = .full
        /// Addresses that a peer's URL may reach although they are not public: for tests and the sandbox.
        var web = WebOptions()
        /// Files and sockets that this process may open; `nil`: as many as anybody asks for.
        var openFiles: Int?
        /// Sockets that listen already, of each listener.
        var sockets: [ConfiguredName: [CInt]] = [:]
        /// Stands between the sealed store and its engine: for tests that watch what is asked of it.
        var engine: @Sendable (any Engine) -> any Engine = { $0 }
    }

    /// Opens the store and wires everything; nothing listens yet.
    static func open(
        _ configuration: RelayConfiguration, _ around: Surroundings
    ) async throws(CommandFailure) -> Relay {
        try FileChecks.refuseOpenSecrets(configuration)
        let share = AppShare(apps: configuration.apps.count)
        let store = try await OpenStore.open(
            configuration.store, limits: configuration.limits, synchronous: around.synchronous,
            world: around.world, journal: around.journal, share: share, rotation: around.rotation,
            engine: around.engine)
        do throws(CommandFailure) { return try Relay(configuration, store, share, around) } catch {
            // What it would have owed is free at once.
            await store.close()
            throw error
        }
    }

    private init(
        _ configuration: RelayConfiguration, _ store: OpenStore, _ share: AppShare, _ around: Surroundings
    ) throws(CommandFailure) {
        self.store = store
        self.share = share
        world = around.world
        journal = around.journal
        reloads = ReloadMemory(around.metrics)
        let web = CurrentWeb(Self.web(configuration, around))
        self.web = web
        makeWeb = { Self.web($0, around) }
        makeShelf = { Self.shelf(replacing: $0, for: $1, around) }
        planning = { DeliveryPlanning(configuration: $0, around) }
        var shelf = makeShelf(nil, configuration)
        let plan = try planning(configuration).plan(&shelf)
        makeWays = { (configuration) throws(CommandFailure) in try Self.ways(configuration, around) }
        let alerts = AlertPort(
            ways: try Self.ways(configuration, around), journal: around.journal, metrics: around.metrics,
            world: around.world)
        let certificates = CertificateWatch(alerts, around.world)
        (self.alerts, self.certificates) = (alerts, certificates)
        let (trail, custody) = (AttemptTrail(), CustodyTally())
        let delivery = DeliveryService(
            outbox: store.sealed, registry: store.sealed, plan: plan,
            limits: Self.limits(around.limits, configuration), world: around.world, journal: around.journal,
            observer: AlertWiring.observer(alerts, trail, custody, around.world))
        self.delivery = delivery
        let nostr = NostrDoors(delivery, web: web, around)
        let subjects = RelayWatch.Subjects(delivery: delivery, store: store, nostr: nostr, custody: custody)
        let watch = RelayWatch(
            subjects, alerts, configuration, limits: around.spans.watch, world: around.world)
        (self.nostr, self.watch) = (nostr, watch)
        let admin = AdminDoor(
            delivery: delivery, store: store, nostr: nostr, watch: watch, metrics: around.metrics,
            alerts: alerts, trail: trail, certificates: certificates, origins: OriginCount(around.world),
            reloads: reloads, process: ProcessFigures(around.world), startedAt: around.world.now(),
            world: around.world)
        doors = { configuration in
            Doors(
                configuration: configuration, delivery: delivery, registry: store.sealed, web: web,
                group: around.group, world: around.world, journal: around.journal, metrics: around.metrics,
                spans: around.spans, descriptors: DescriptorPlan(configuration, limit: around.openFiles),
                alerts: alerts,
                admin: { listener throws(CommandFailure) in try admin.face(listener, of: configuration) })
        }
        let doors = doors(configuration)
        let faces = try doors.faces()
        listeners = try doors.listeners(faces, on: around.sockets)
        let plans = try nostr.plans(configuration)
        nostr.adopt(plans)
        let publicKeys = Self.publicKeys(faces, plans)
        standing = Mutex(Standing(configuration: configuration, shelf: shelf, publicKeys: publicKeys))
        certificates.adopt(configuration)
        if !configuration.isSandbox, configuration.isKeyBesideStore { alerts.raise(.keyBesideDatabase) }
    }

    /// A twentieth of the outbox for what one origin's pace puts off, so that no single origin fills it.
    private static func limits(
        _ limits: DeliveryLimits, _ configuration: RelayConfiguration
    ) -> DeliveryLimits {
        var limits = limits
        limits.pacedPushes = min(limits.pacedPushes, max(1, configuration.limits.outboxRows / 20))
        return limits
    }

    private static func shelf(
        replacing old: CredentialShelf?, for configuration: RelayConfiguration, _ around: Surroundings
    ) -> CredentialShelf {
        CredentialShelf(
            replacing: old, proxy: configuration.proxy, world: around.world, journal: around.journal
        ) { fcm in
            // The token endpoint may stand behind an authority of the configuration's own.
            var options = options(configuration, around.web)
            if let file = fcm.caFile { options.extraAuthorities.append(file) }
            return HTTPSFetch(options, group: around.group, world: around.world)
        }
    }

    private static func web(_ configuration: RelayConfiguration, _ around: Surroundings) -> any WebFetch {
        HTTPSFetch(options(configuration, around.web), group: around.group, world: around.world)
    }

    /// Which ways alerts go; a webhook's calls take the configuration's own proxy.
    private static func ways(
        _ configuration: RelayConfiguration, _ around: Surroundings
    ) throws(CommandFailure) -> AlertWays {
        try AlertWiring(configuration, web(configuration, around)).ways(around.world)
    }

    private static func options(_ configuration: RelayConfiguration, _ base: WebOptions) -> WebOptions {
        var options = base
        if let proxy = configuration.proxy {
            options.proxy = WebOptions.Proxy(host: proxy.host, port: proxy.port)
        }
        return options
    }

    private static func publicKeys(
        _ faces: [ConfiguredName: Doors.Face], _ plans: [NostrDoors.Plan]
    ) -> [String: [String]] {
        Dictionary(
            faces.map { ($0.key.text, $0.value.publicKeys) } + plans.map { ($0.name.text, $0.publicKeys) },
            uniquingKeysWith: { $1 })
    }

    var publicKeys: [String: [String]] { standing.withLock(\.publicKeys) }
    func lanes() -> [LaneSnapshot] { delivery.snapshot() }

    /// Takes every listener's address.
    ///
    /// - Returns: listener → base URL.
    /// - Throws: `CommandFailure(.unavailable)` that names the listener.
    func listen() async throws(CommandFailure) -> [String: String] {
        let configuration = standing.withLock(\.configuration)
        var urls: [String: String] = [:]
        for listener in listeners {
            do throws(IngressError) {
                let port = try await listener.open()
                guard let facts = configuration.listener(listener.name) else { continue }
                let host = facts.bind.host.contains(":") ? "[\(facts.bind.host)]" : facts.bind.host
                urls[listener.name.text] = "\(facts.tls == nil ? "http" : "https")://\(host):\(port)"
            } catch {
                throw CommandFailure(.unavailable, "listeners.\(listener.name.text): \(error.sentence)")
            }
        }
        return urls
    }

    /// Store first, then delivery, then doors: a stop runs in the reverse order, so nothing is taken in that
    /// nobody would send.
    var services: [any Service] {
        var services: [any Service] = []
        services += store.housekeeping
        if let seals = store.seals { services.append(seals) }
        services.append(
            SweepService(
                servers: { [self] in
                    let configuration = standing.withLock(\.configuration)
                    return DeskInstances(configuration, store.sealed, world: world).servers
                }, world: world, journal: journal))
        services.append(alerts)
        services.append(certificates)
        services.append(delivery)
        services.append(watch)
        services.append(nostr)
        services += listeners
        return services
    }

    /// Puts another configuration in force: credentials, apps, instances, sign-up lists, certificates.
    /// Requests under way end as they began.
    ///
    /// - Throws: what is wrong; then the old one stays in force, whole.
    func reload(_ new: RelayConfiguration) throws {
        let old = standing.withLock { $0 }
        try ReloadRule.check(old.configuration, new)
        try FileChecks.refuseOpenSecrets(new)
        var shelf = makeShelf(old.shelf, new)
        let delivering = try planning(new).plan(&shelf)
        let doors = doors(new)
        let faces = try doors.faces()
        let plans = try nostr.plans(new)
        let ways = try makeWays(new)
        // Everything that can fail is made before anything is exchanged.
        var exchanges: [() -> Void] = []
        for listener in listeners {
            guard let facts = new.listener(listener.name) else { continue }
            let router = try doors.router(facts, faces)
            exchanges.append(try listener.prepareTLS(Doors.files(facts)))
            exchanges.append {
                listener.install(router, proxies: TrustedProxies(facts.trustedProxies))
            }
        }
        web.adopt(makeWeb(new))
        share.set(apps: new.apps.count)
        delivery.adopt(delivering)
        nostr.adopt(plans)
        for exchange in exchanges { exchange() }
        alerts.adopt(ways)
        watch.adopt(new)
        certificates.adopt(new)
        standing.withLock {
            $0 = Standing(configuration: new, shelf: shelf, publicKeys: Self.publicKeys(faces, plans))
        }
        reloads.note(.done, at: world.now())
        alerts.clear(Alert.reloadRefused(ErrorCode("file")).subject)
        journal.note(
            "configuration reloaded", [.configuration: ConfiguredText(new.file ?? "sandbox")])
    }

    /// A configuration did not come into force: the one of before stands, and an operator hears of it.
    func refuseReload(_ code: ErrorCode) {
        reloads.note(.refused(code), at: world.now())
        alerts.raise(.reloadRefused(code))
        journal.note("reload refused", [.code: code], level: .error)
    }

    /// Closes the store; after `run`.
    func close() async { await store.close() }
}
