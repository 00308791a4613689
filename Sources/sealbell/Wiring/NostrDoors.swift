import Delivery
import EventLoops
import MarmotPush
import NIOCore
import NostrIngress
import Primitives
import PushModel
import ServiceLifecycle
import Synchronization
import WebSocket

/// The instances that listen at Nostr relays. A reload adds and removes them, and changes those that stay
/// without dropping a connection that can go on.
final class NostrDoors: Service {
    /// What a configuration makes of one instance; nothing is in force yet.
    struct Plan {
        let name: ConfiguredName
        let plan: NostrPlan
        let post: MarmotPost
        /// PEM of the authority to trust.
        let certificates: [UInt8]?
        let client: WebSocketClient

        var publicKeys: [String] { plan.keys.map(\.publicKey.hex) }
    }

    private struct Entry {
        let ingress: NostrIngress
        let post: MarmotPost
        let certificates: [UInt8]?
    }

    private struct State {
        var entries: [ConfiguredName: Entry] = [:]
        /// Those that nobody runs yet.
        var waiting: [NostrIngress] = []
        var isStopping = false
    }

    /// What listening hands on to, and whom it shares the work with.
    struct Delivery {
        let intake: VolatileIntake
        let membership: Membership
    }

    private let around: Relay.Surroundings
    private let delivery: Delivery
    private let web: any WebFetch
    private let state = Mutex(State())
    private let changed = Bell()
    /// Who refuses our relay lists.
    let refusals = ListRefusals()

    init(_ delivery: DeliveryService, web: any WebFetch, _ around: Relay.Surroundings) {
        self.delivery = Delivery(intake: delivery.volatileIntake, membership: delivery.membership)
        self.web = web
        self.around = around
    }

    /// Reads what the instances of a configuration need.
    ///
    /// - Throws: `CommandFailure` that names the file at fault.
    func plans(_ configuration: RelayConfiguration) throws(CommandFailure) -> [Plan] {
        var plans: [Plan] = []
        for instance in configuration.instances {
            if let marmot = instance.marmot { plans.append(try plan(instance, marmot, configuration)) }
        }
        return plans
    }

    private func plan(
        _ instance: InstanceConfiguration, _ marmot: MarmotInstanceConfiguration,
        _ configuration: RelayConfiguration
    ) throws(CommandFailure) -> Plan {
        var keys: [Secp256k1KeyPair] = []
        for file in [marmot.keyFile] + marmot.oldKeyFiles { keys.append(try Self.key(file)) }
        guard Set(keys.map(\.publicKey)).count == keys.count else {
            throw CommandFailure(
                .configuration, "\(marmot.keyFile): The same key stands in two of the files.")
        }
        let certificates: [UInt8]? = try marmot.caFile.map { (file) throws(CommandFailure) in
            try CredentialShelf.read(file).reveal { Array($0) }
        }
        let old = state.withLock { $0.entries[instance.name]?.post }
        let post = try MarmotPost(
            instance, marmot, keys: keys, servesFCM: configuration.hasFCM(instance), replacing: old,
            delivery: delivery, around)
        do throws(WebSocketError) {
            var relays: [NostrRelay] = []
            for url in marmot.relays { relays.append(try NostrRelay(url)) }
            let client = try WebSocketClient(
                executor: LoopExecutor(around.group.next()), limits: around.spans.nostrConnections,
                certificates: certificates, world: around.world)
            let proxy = marmot.proxy.map { SOCKS5Proxy(host: $0.host, port: $0.port) }
            return Plan(
                name: instance.name,
                plan: NostrPlan(
                    relays: relays, keys: keys, backlog: marmot.backlog, proxy: proxy,
                    testsItself: marmot.selfTest),
                post: post, certificates: certificates, client: client)
        } catch {
            throw CommandFailure(.configuration, "instances.\(instance.name.text): \(error.sentence)")
        }
    }

    private static func key(_ file: String) throws(CommandFailure) -> Secp256k1KeyPair {
        let bytes = try CredentialShelf.read(file)
        do throws(NostrKeyFile.Fault) {
            return try NostrKeyFile.parse(bytes)
        } catch {
            throw CommandFailure(.configuration, "\(file): \(error.sentence)")
        }
    }

    // MARK: Putting in force

    func adopt(_ plans: [Plan]) {
        let gone = state.withLock { state -> [NostrIngress] in
            var entries: [ConfiguredName: Entry] = [:]
            for plan in plans {
                if let old = state.entries[plan.name], old.certificates == plan.certificates {
                    old.ingress.adopt(plan.plan, take: plan.post.take)
                    entries[plan.name] = Entry(
                        ingress: old.ingress, post: plan.post, certificates: plan.certificates)
                } else {
                    let ingress = ingress(plan)
                    entries[plan.name] = Entry(
                        ingress: ingress, post: plan.post, certificates: plan.certificates)
                    state.waiting.append(ingress)
                }
            }
            let gone = state.entries.values.map(\.ingress).filter { old in
                !entries.values.contains { $0.ingress === old }
            }
            state.waiting.removeAll { waiting in gone.contains { $0 === waiting } }
            state.entries = entries
            return gone
        }
        for ingress in gone { ingress.stop() }
        refusals.keep(
            Set(plans.flatMap { plan in plan.plan.relays.compactMap { ListRefusals.place(plan.name, $0) } }))
        changed.ring()
    }

    private func ingress(_ plan: Plan) -> NostrIngress {
        NostrIngress(
            name: plan.name, plan: plan.plan, client: plan.client, document: RelayInformation.fetch(web),
            membership: delivery.membership, limits: around.spans.nostr,
            world: around.world, journal: refusals.watching(around.journal), metrics: around.metrics,
            take: plan.post.take)
    }

    /// Of each instance, how many relays have the subscription in force.
    func presence() async -> [(name: ConfiguredName, listening: Int)] {
        let all = state.withLock { $0.entries.mapValues(\.ingress) }
        var found: [(name: ConfiguredName, listening: Int)] = []
        for (name, ingress) in all { found.append((name, await ingress.presence().listening)) }
        return found
    }

    /// Whether some relay of the instance has the subscription in force.
    func isListening(_ name: ConfiguredName) async -> Bool {
        guard let ingress = state.withLock({ $0.entries[name]?.ingress }) else { return false }
        return await ingress.presence().listening > 0
    }

    // MARK: Running

    func run() async throws {
        await withGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { await self.sweep() }
                    await self.listen()
                    group.cancelAll()
                }
            } onCancel: {
                self.stop()
            }
        } onGracefulShutdown: {
            self.stop()
        }
    }

    private func listen() async {
        await withDiscardingTaskGroup { doors in
            while let fresh = self.fresh() {
                for ingress in fresh {
                    // It throws nothing; the protocol's word is wider than what it does.
                    doors.addTask { try? await ingress.run() }
                }
                await changed.waitThroughCancellation()
            }
        }
    }

    /// What roles remember goes when it is over, at a server that hears nothing too.
    private func sweep() async {
        while true {
            // The sleep ends early only by cancellation, which ends the doors.
            do { try await around.world.sleep(around.world.instant() + Self.sweepEvery) } catch { return }
            let posts = state.withLock { $0.entries.values.map(\.post) }
            for post in posts { post.forget() }
        }
    }

    /// The least span that anything is remembered for, and some tables' worth in an hour.
    private static let sweepEvery = Duration.seconds(60)

    private func stop() {
        let all = state.withLock { state in
            state.isStopping = true
            return state.entries.values.map(\.ingress)
        }
        for ingress in all { ingress.stop() }
        changed.ring()
    }

    private func fresh() -> [NostrIngress]? {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.isStopping ? nil : state.waiting
        }
    }
}

extension RelayConfiguration {
    func hasFCM(_ instance: InstanceConfiguration) -> Bool {
        instance.fcmApp.flatMap(app)?.fcm != nil
    }
}
