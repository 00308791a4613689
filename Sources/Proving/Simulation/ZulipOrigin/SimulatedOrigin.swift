import AtRest
import Delivery
import OriginServer
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization
import Uplink
import WireFormats
import ZulipPush

/// One origin process: the real people, users, notifier and lanes over the real sealed store, on a machine
/// that can die at any moment.
final class SimulatedOrigin: Sendable {
    static let name = ConfiguredName("origin")!
    static let realm = "acme"

    /// What every life of it has.
    struct Surroundings: Sendable {
        let scheduler: Scheduler
        let ledger: OriginLedger
        let relay: PlayedRelay
        let keys: AtRestKeys
        let store: SimulatedProcess.StoreKind
        let users: [String]
        let sabotage: OriginSeedRun.Sabotage
        /// Of the store's link, which keeps a ledger of pushes as well.
        let pushes: PushLedger
    }

    /// The parts of a life.
    struct House: Sendable {
        let store: SealedStore
        let people: OriginPeople
        let polls: EventPolls
        let users: ZulipUsers
        let notifier: ZulipNotifier
        let staleLists: StaleLists
        let world: World
        let sabotage: OriginSeedRun.Sabotage
    }

    private struct State {
        var life = 0
        var machine: SimulatedExecutor?
        var house: House?
        var link: EngineLink?
        var group: ServiceGroup?
    }

    private let around: Surroundings
    private let state = Mutex(State())
    private let credentials: ZulipOrigin

    init(_ around: Surroundings) {
        self.around = around
        var generator = WorldDraw(scheduler: around.scheduler)
        credentials = ZulipOrigin.invent(version: "12.2", using: &generator).origin
    }

    var machine: SimulatedExecutor? { state.withLock(\.machine) }
    /// `nil` while it does not serve.
    var house: House? { state.withLock(\.house) }
    var isUp: Bool { machine != nil }

    // MARK: Fates

    func start() {
        around.ledger.happened("the origin starts")
        let machine = around.scheduler.machine()
        let life = state.withLock { state in
            state.life += 1
            state.machine = machine
            return state.life
        }
        machine.begin { await self.live(life, on: machine) }
    }

    /// SIGKILL.
    func kill() {
        around.ledger.happened("the origin is killed")
        let machine = state.withLock { state in
            defer { (state.machine, state.house, state.link, state.group) = (nil, nil, nil, nil) }
            return state.machine
        }
        machine?.kill()
        if case .file(let file) = around.store { file.abandon() }
    }

    func hold() { machine?.hold() }
    func goOn() { machine?.goOn() }
    func trouble(_ change: (inout EngineLink.Trouble) -> Void) { state.withLock(\.link)?.trouble(change) }

    /// SIGTERM.
    func stop() async {
        around.ledger.happened("the origin is stopped")
        let (group, house) = state.withLock { ($0.group, $0.house) }
        house?.polls.end()
        await group?.triggerGracefulShutdown()
    }

    // MARK: Living

    private func world() -> World {
        let scheduler = around.scheduler
        return World(
            now: { scheduler.now }, instant: { scheduler.instant },
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
                    engine, scheduler, database: database, ledger: around.pushes, process: 0,
                    clock: world.now, sabotage: [])
                state.withLock { $0.link = link }
                let store = try await SealedStore(engine: link, keys: around.keys, world: world)
                return try await serve(store, world, machine)
            } catch {
                if case .file(let file) = around.store { file.abandon() }
                await scheduler.pause(.seconds(1) ... .seconds(2))
            }
        }
    }

    /// - Throws: what keeps it from beginning to serve.
    private func serve(_ store: SealedStore, _ world: World, _ machine: SimulatedExecutor) async throws {
        var limits = DeliveryLimits()
        limits.tick = .milliseconds(500)
        limits.recountTicks = 10
        let service = DeliveryService(
            outbox: store, registry: store, limits: limits, world: world,
            journal: Journal { _, event, _ in self.around.ledger.happened("the origin notes \(event)") })
        let house = house(store, service.intake, world)
        service.adopt(setup(house, world))
        try await settle(house.people)
        let group = ServiceGroup(services: [service], gracefulShutdownSignals: [], logger: silentLogger)
        state.withLock { ($0.house, $0.group) = (house, group) }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await house.polls.run() }
            tasks.addTask { await self.look(house) }
            do { try await group.run() } catch {
                around.ledger.happened("the origin ends: \(error)")
            }
            tasks.cancelAll()
        }
        if case .file(let file) = around.store { file.close() }
        let isOurs = state.withLock { state in
            guard state.machine === machine else { return false }
            (state.machine, state.house, state.link, state.group) = (nil, nil, nil, nil)
            return true
        }
        if isOurs { around.ledger.happened("the origin has stopped") }
    }

    private func house(_ store: SealedStore, _ intake: Intake, _ world: World) -> House {
        let space = OriginSpace(Self.name)
        let people = OriginPeople(space, store, world)
        let (credentials, ledger) = (credentials, around.ledger)
        let context = ZulipOriginContext(
            space: space, people: people, registry: store, intake: intake, world: world,
            relay: "https://relay.example", origin: { credentials },
            alert: { alert, _ in ledger.happened("administrators hear \(alert.name)") })
        var settings = ZulipOriginSettings(version: "12.2")
        settings.times.first = .seconds(5)
        settings.times.longest = .seconds(60)
        let polls = EventPolls(settings, world)
        let users = ZulipUsers(context, settings, polls: polls)
        return House(
            store: store, people: people, polls: polls, users: users, notifier: ZulipNotifier(users),
            staleLists: StaleLists(users), world: world, sabotage: around.sabotage)
    }

    private func setup(_ house: House, _ world: World) -> DeliveryService.Setup {
        let office = PlayedOffice(
            ZulipOffice(house.users, house.notifier, house.staleLists), around.scheduler, around.sabotage)
        var specs: [DeliveryService.LaneSpec] = []
        var apps: [AppDirectory.App] = []
        let kinds: [(UplinkMessage.Kind, String)] = [
            (.registration, "registration"), (.notification, "notification"), (.staleList, "stale-list")
        ]
        for (kind, word) in kinds {
            guard let app = ConfiguredName("origin.\(word)") else { continue }
            let lane = LaneName(app: app, service: .uplink, environment: .production)
            specs.append(
                DeliveryService.LaneSpec(
                    UplinkProvider(lane: lane, web: around.relay, office: office, world: world),
                    credential: Credential()))
            apps.append(AppDirectory.App(name: app, outlets: [UplinkOutlet(kind)]))
        }
        return DeliveryService.Setup(
            apps: AppDirectory([AppDirectory.Instance(name: Self.name, apps: apps)]), lanes: specs,
            overrides: [:])
    }

    /// Realm and users, as an operator adds them before anything else.
    private func settle(_ people: OriginPeople) async throws {
        try await people.load()
        if people.realms.isEmpty { _ = try await people.addRealm(Self.realm, url: "https://chat.example") }
        for user in around.users where try await people.user(user) == nil {
            _ = try await people.addUser(user, realm: nil)
        }
    }

    private func look(_ house: House) async {
        while !Task.isCancelled {
            do throws(OriginError) {
                try await house.people.load()
                try await house.staleLists.look()
                try await house.users.sweep()
            } catch { around.ledger.happened("the origin's upkeep fails: \(error)") }
            await around.scheduler.pause(.seconds(60) ... .seconds(60))
        }
    }

    /// Asks it for something; `nil` when nothing came back in time, or its machine died.
    func ask<Value: Sendable>(
        within span: Duration = .seconds(40), _ body: @escaping @Sendable (House) async -> Value?
    ) async -> Value? {
        guard let machine, let house else { return nil }
        let (reply, scheduler) = (Reply<Value?>(), around.scheduler)
        let answer = await withUnsafeContinuation { (continuation: UnsafeContinuation<Value??, Never>) in
            reply.begin(continuation)
            let timeout = scheduler.at(scheduler.instant + span) { reply.end(nil) }
            machine.begin {
                let value = await body(house)
                scheduler.callOff(timeout)
                reply.end(value)
            }
        }
        return answer ?? nil
    }
}

/// Makes of answers what the real office makes of them, and hands some over twice: the second time nothing
/// may follow.
private struct PlayedOffice: UplinkOffice {
    private let office: ZulipOffice
    private let scheduler: Scheduler
    private let sabotage: OriginSeedRun.Sabotage

    init(_ office: ZulipOffice, _ scheduler: Scheduler, _ sabotage: OriginSeedRun.Sabotage) {
        (self.office, self.scheduler, self.sabotage) = (office, scheduler, sabotage)
    }

    func leave(of message: UplinkMessage) async -> UplinkLeave { await office.leave(of: message) }

    func take(_ answer: CallAnswer, to message: UplinkMessage, of call: PushID) async -> UplinkVerdict {
        if sabotage.contains(.hearsNothing), message.kind == .registration, scheduler.chance(10) {
            return .done
        }
        if sabotage.contains(.believesAll), message.kind == .notification {
            let body = Secret(
                (#"{"result":"success","msg":"","apple_successfully_sent_count":1,"#
                    + #""android_successfully_sent_count":0}"#).utf8)
            return await office.take(.http(status: 200, body: body), to: message, of: call)
        }
        let verdict = await office.take(answer, to: message, of: call)
        guard scheduler.chance(10), verdict == .done || verdict == .refused else { return verdict }
        _ = await office.take(answer, to: message, of: call)
        return verdict
    }
}

/// The seed's chance, as a generator.
struct WorldDraw: RandomNumberGenerator {
    let scheduler: Scheduler
    mutating func next() -> UInt64 { scheduler.random() }
}
