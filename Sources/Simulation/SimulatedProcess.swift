import AtRest
import Delivery
import Logging
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
        let book: Book
        let service: SimulatedPushService
        let keys: AtRestKeys
        let store: StoreKind
        let sabotage: Trial.Sabotage
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
        let machine = state.withLock { state in
            defer {
                state.machine = nil
                state.store = nil
                state.service = nil
                state.link = nil
                state.group = nil
            }
            return state.machine
        }
        machine?.kill()
        if case .file(let file) = around.store { file.abandon() }
    }

    /// SIGSTOP and SIGCONT.
    func hold() { machine?.hold() }
    func goOn() { machine?.goOn() }

    func cut(_ isCut: Bool) { state.withLock(\.link)?.cut(isCut) }
    func skew(_ span: Duration) { state.withLock { $0.skew = span } }

    /// SIGTERM.
    func stop() async { await state.withLock(\.group)?.triggerGracefulShutdown() }

    // MARK: Living

    private func world() -> World {
        let scheduler = around.scheduler
        return World(
            now: { scheduler.now + self.state.withLock(\.skew) }, instant: { scheduler.instant },
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
                    engine, scheduler, database: database, book: around.book,
                    sabotage: around.sabotage.ofEngine)
                state.withLock { $0.link = link }
                let store = try await SealedStore(engine: link, keys: around.keys, world: world)
                return await serve(store, owner, Book.Life(process: number, life: life), machine, database)
            } catch {
                if case .file(let file) = around.store { file.abandon() }
                await scheduler.pause(.seconds(1) ... .seconds(2))
            }
        }
    }

    private func serve(
        _ store: SealedStore, _ owner: OwnerID, _ life: Book.Life, _ machine: SimulatedExecutor,
        _ database: SimulatedDatabase?
    ) async {
        let world = world()
        let plan = plan(store, owner, life, machine, database, world)
        let service = DeliveryService(
            outbox: store, registry: store,
            plan: plan, limits: Self.limits, world: world, journal: .silent)
        let group = ServiceGroup(
            services: [service], gracefulShutdownSignals: [], logger: Self.silence)
        state.withLock { state in
            state.store = store
            state.service = service
            state.group = group
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

    /// One app with both push services.
    private func plan(
        _ store: SealedStore, _ owner: OwnerID, _ life: Book.Life, _ machine: SimulatedExecutor,
        _ database: SimulatedDatabase?, _ world: World
    ) -> DeliveryService.Plan {
        let credential = Credential()
        var before: (@Sendable (OwedPush) async -> Void)?
        if around.sabotage.contains(.settlesFirst) {
            before = { push in
                // A failure leaves the row, and then nothing is broken.
                _ = try? await store.settle([Settlement(push, .settle, first: .accepted)], feedback: [])
            }
        }
        let routes = [ProviderKind.apns, .fcm].map { kind -> DeliveryService.Route in
            let lane = LaneName(app: Self.app, service: kind, environment: .production)
            let provider = SimulatedProvider(
                lane, machine, life: life, owner: owner, world: world, service: around.service,
                database: database, book: around.book,
                before: before)
            return DeliveryService.Route(provider, credential: credential)
        }
        let apps = AppDirectory([
            AppDirectory.Instance(
                name: Self.instance,
                apps: [
                    AppDirectory.App(
                        name: Self.app, bundles: .listed([Self.bundle]), environment: .fixed(.production),
                        hasFCM: true)
                ], fcmApp: Self.app)
        ])
        return DeliveryService.Plan(apps: apps, routes: routes, overrides: [:])
    }

    private static let silence = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }

    /// Small, so that a short run meets the bounds; the tick is coarse, so that a long one is cheap.
    private static let limits: DeliveryLimits = {
        var limits = DeliveryLimits()
        limits.lanePushes = 12
        limits.claimRows = 8
        limits.tick = .milliseconds(500)
        limits.recountTicks = 10
        limits.backoffCap = .seconds(20)
        limits.settleBatch = 16
        limits.settleBacklog = 64
        limits.sweepRows = 10
        return limits
    }()
}
