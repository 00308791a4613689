import AtRest
import Delivery
import MemoryStore
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization

/// One relay process: the real core over the real sealed store, on a machine that can die at any moment.
final class SimulatedProcess: Sendable {
    static let instance = ConfiguredName("simulated")!
    static let app = ConfiguredName("acme")!
    static let bundle = "org.acme"

    /// What all processes share.
    struct Surroundings: Sendable {
        let scheduler: Scheduler
        let ledger: PushLedger
        let service: SimulatedPushService
        let keys: AtRestKeys
        let store: StoreKind
        let traits: Traits
        let sabotage: SeedRun.Sabotage
    }

    /// What a process opens.
    enum StoreKind: Sendable {
        case server(SimulatedDatabase)
        case file(SimulatedFile)
    }

    private struct State {
        var life = 0
        var machine: SimulatedExecutor?
        var store: SealedStore?
        var service: DeliveryService?
        var link: EngineLink?
        var group: ServiceGroup?
        /// How far the machine's wall clock is from the true one.
        var skew: Duration = .zero
        /// How often the machine has stood still.
        var holds = 0
        var hasToken = true
        /// Raised for lanes that are to be replaced.
        var stamps: [LaneName: Int] = [:]
        /// Lanes that the configuration does not name now.
        var missing: Set<LaneName> = []
        /// The plan of this life, as the configuration stands.
        var plan: (@Sendable () -> DeliveryService.Setup)?
    }

    let number: Int
    private let around: Surroundings
    private let state = Mutex(State())

    init(_ number: Int, _ around: Surroundings) {
        self.number = number
        self.around = around
    }

    var machine: SimulatedExecutor? { state.withLock(\.machine) }
    var store: SealedStore? { state.withLock(\.store) }
    var service: DeliveryService? { state.withLock(\.service) }
    var isUp: Bool { machine != nil }
    /// By the machine's own clock.
    var now: UnixTime { around.scheduler.now + state.withLock(\.skew) }
    var holds: Int { state.withLock(\.holds) }
    var tick: Duration { around.traits.limits.tick }

    var description: String {
        state.withLock { state in
            "process \(number) life \(state.life) \(state.machine == nil ? "down" : "up")"
                + " \(state.store == nil ? "without" : "with") store,"
                + " \(state.service?.settleBacklog ?? 0) to settle"
        }
    }

    // MARK: Fates

    /// Starts a life of its own; returns when its jobs have been begun.
    func start() {
        let scheduler = around.scheduler
        around.ledger.happened("process \(number) starts")
        let machine = scheduler.machine()
        let life = state.withLock { state in
            state.life += 1
            state.machine = machine
            return state.life
        }
        machine.begin { await self.live(life, on: machine) }
    }

    /// SIGKILL: nothing of it happens any more. What it had asked of others they may still do.
    func kill() {
        around.ledger.happened("process \(number) is killed")
        let machine = state.withLock { state in
            defer {
                state.machine = nil
                state.store = nil
                state.service = nil
                state.link = nil
                state.group = nil
                state.plan = nil
            }
            return state.machine
        }
        machine?.kill()
        if case .file(let file) = around.store { file.abandon() }
    }

    /// SIGSTOP and SIGCONT.
    func hold() {
        around.ledger.happened("process \(number) stands still")
        state.withLock { $0.holds += 1 }
        machine?.hold()
    }
    func goOn() {
        around.ledger.happened("process \(number) goes on")
        machine?.goOn()
    }

    func trouble(_ change: (inout EngineLink.Trouble) -> Void) { state.withLock(\.link)?.trouble(change) }
    func skew(_ span: Duration) {
        around.ledger.happened("process \(number) has its clock wrong by \(span)")
        state.withLock { $0.skew = span }
    }

    func setToken(_ hasToken: Bool) {
        around.ledger.happened("process \(number) has \(hasToken ? "a" : "no") token")
        state.withLock { $0.hasToken = hasToken }
    }

    /// SIGTERM.
    func stop() async {
        around.ledger.happened("process \(number) is stopped")
        await state.withLock(\.group)?.triggerGracefulShutdown()
    }

    /// SIGHUP, with another configuration: some lanes have new credentials.
    ///
    /// - Parameter missing: lanes that it does not name.
    func reload(without missing: Set<LaneName> = []) {
        let scheduler = around.scheduler
        let changed = lanes.filter { _ in scheduler.chance(60) }
        around.ledger.happened("process \(number) reloads \(changed), without \(missing)")
        state.withLock { state in
            for lane in changed { state.stamps[lane, default: 0] += 1 }
            state.missing = missing
        }
        machine?.begin {
            let (service, plan, link) = self.state.withLock { ($0.service, $0.plan, $0.link) }
            if let service, let plan {
                self.around.ledger.renewed(self.number)
                service.adopt(plan())
            }
            guard self.around.sabotage.contains(.reclaimsBesideReload) else { return }
            await scheduler.pause(.zero ... .seconds(1))
            // A failure leaves the rows, and then nothing is broken.
            _ = try? await link?.reclaim(limit: 1_000)
        }
    }

    /// Nothing is wrong any more.
    func mend() {
        trouble { $0 = EngineLink.Trouble() }
        skew(.zero)
        setToken(true)
        goOn()
        if !isUp { start() }
        if !state.withLock(\.missing).isEmpty { reload() }
    }

    /// One app, with both push services.
    private var lanes: [LaneName] {
        var lanes = [
            LaneName(app: Self.app, service: .apns, environment: .production),
            LaneName(app: Self.app, service: .fcm, environment: .production)
        ]
        if around.traits.learns {
            lanes.append(LaneName(app: Self.app, service: .apns, environment: .sandbox))
        }
        return lanes
    }

    /// A lane that a configuration may come to do without: an app that learns has both of Apple's.
    var someLane: LaneName? {
        let lanes = around.traits.learns ? lanes.filter { $0.service == .fcm } : lanes
        return lanes[around.scheduler.random(in: 0...lanes.count - 1)]
    }

    // MARK: Living

    private func world() -> World {
        let scheduler = around.scheduler
        return World(
            now: { self.now }, instant: { scheduler.instant },
            sleep: { try await scheduler.sleep(until: $0) }, random: { scheduler.random() })
    }

    private func live(_ life: Int, on machine: SimulatedExecutor) async {
        let (world, scheduler) = (world(), around.scheduler)
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        // As a supervisor would: until the store can be reached.
        while true {
            do {
                let engine: any Engine
                var database: SimulatedDatabase?
                switch around.store {
                case .server(let server):
                    engine = server.engine(of: owner)
                    database = server
                case .file(let file): engine = try file.open(owner: owner, world: world)
                }
                let link = EngineLink(
                    engine, scheduler, database: database, ledger: around.ledger, process: number,
                    clock: world.now, sabotage: around.sabotage.ofEngine)
                state.withLock { $0.link = link }
                let store = try await SealedStore(engine: link, keys: around.keys, world: world)
                return await serve(
                    store, link, owner, PushLedger.Life(process: number, life: life), machine, database)
            } catch {
                if case .file(let file) = around.store { file.abandon() }
                await scheduler.pause(.seconds(1) ... .seconds(2))
            }
        }
    }

    private func serve(
        _ store: SealedStore, _ link: EngineLink, _ owner: OwnerID, _ life: PushLedger.Life,
        _ machine: SimulatedExecutor, _ database: SimulatedDatabase?
    ) async {
        let limits = around.sabotage.changed(around.traits.limits)
        let saboteur = Saboteur(around.sabotage, around.scheduler, limits) {
            self.service?.snapshot() ?? []
        }
        let world = saboteur.world(world(), link)
        let watched = WatchedStore(
            store, around.ledger, around.scheduler, process: number, saboteur.ofStore())
        let make = Lanes(
            owner: owner, life: life, machine: machine, database: database, world: world,
            credentials: [.apns: Credential(), .fcm: Credential()], sabotage: saboteur.ofProvider(store))
        let plan = { @Sendable in self.plan(make) }
        let service = DeliveryService(
            outbox: watched, registry: watched, setup: plan(), limits: limits, world: world,
            journal: journal(of: life), observer: observer(of: life))
        let group = ServiceGroup(
            services: [service], gracefulShutdownSignals: [], logger: silentLogger)
        state.withLock { state in
            state.store = store
            state.service = service
            state.group = group
            state.plan = plan
        }
        do {
            try await group.run()
        } catch {
            // The store was out at the first renewal: a supervisor starts it again.
            guard state.withLock({ $0.machine === machine }) else { return }
            await around.scheduler.pause(.seconds(1) ... .seconds(2))
            if case .file(let file) = around.store { file.abandon() }
            start()
            return
        }
        // Stopped in good order.
        if case .file(let file) = around.store { file.close() }
        state.withLock { state in
            guard state.machine === machine else { return }
            state.machine = nil
            state.store = nil
            state.service = nil
            state.link = nil
            state.group = nil
        }
    }

    /// What a life's lanes are made of.
    private struct Lanes: Sendable {
        let owner: OwnerID
        let life: PushLedger.Life
        let machine: SimulatedExecutor
        let database: SimulatedDatabase?
        let world: World
        /// Of each push service one, for both of its environments.
        let credentials: [PushService: Credential]
        let sabotage: SimulatedProvider.Sabotage
    }

    private func plan(_ made: Lanes) -> DeliveryService.Setup {
        let specs = lanes.compactMap { lane -> DeliveryService.LaneSpec? in
            let (isMissing, stamp) = state.withLock { ($0.missing.contains(lane), $0.stamps[lane] ?? 0) }
            guard !isMissing else { return nil }
            let provider = SimulatedProvider(
                lane, made.machine, life: made.life, owner: made.owner, world: made.world,
                service: around.service, database: made.database, ledger: around.ledger,
                hasToken: { self.state.withLock(\.hasToken) }, sabotage: made.sabotage)
            return DeliveryService.LaneSpec(
                provider, credential: made.credentials[lane.service] ?? Credential(), stamp: stamp)
        }
        let apps = AppDirectory([
            AppDirectory.Instance(
                name: Self.instance,
                apps: [
                    AppDirectory.App(
                        name: Self.app,
                        outlets: [
                            APNsOutlet(
                                bundles: .listed([Self.bundle]),
                                environment: around.traits.learns ? .learn : .fixed(.production)),
                            FCMOutlet(isDefault: true)
                        ])
                ])
        ])
        return DeliveryService.Setup(apps: apps, lanes: specs, overrides: [:])
    }

    /// Of all that is logged the law wants to know one thing.
    private func journal(of life: PushLedger.Life) -> Journal {
        let ledger = around.ledger
        return Journal { _, event, fields in
            guard "\(event)" == "lane slowed" else { return }
            for case (.lane, let lane as LaneName) in fields {
                ledger.happened("\(life) slows \(lane)")
                ledger.slowed(lane, by: life)
            }
        }
    }

    private func observer(of life: PushLedger.Life) -> DeliveryObserver {
        let ledger = around.ledger
        let span = around.traits.limits.unansweredAfter - .seconds(5)
        return DeliveryObserver(
            laneHalted: { lane, cause, _ in
                ledger.happened("\(life) halts \(lane), \(cause)")
                switch cause {
                case .targets: ledger.halted(lane, by: life)
                case .credential:
                    ledger.refused(lane, by: life)
                    ledger.haltedForCredential(lane, by: life)
                }
            },
            laneResumed: { ledger.happened("\(life) resumes \($0)") },
            laneUnanswered: { lane, _ in
                ledger.happened("\(life) calls \(lane) silent")
                ledger.calledSilent(lane, by: life, after: span)
            },
            attempted: { ledger.judged($0, by: life) })
    }
}
