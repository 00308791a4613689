import NIOPosix
import PushModel
import Secp256k1Keys
import Simulators
import WakuIngress

/// A relay with many people registered, at a simulated Waku node: how long it takes to start, what they take
/// of its memory, and what a message on one of their topics costs it.
struct FollowedBench: Sendable {
    /// People of the start that the other one is compared with.
    private static let few = 1_000
    /// Messages that are under way at once.
    private static let atOnce = 500
    /// How long a relay may take to listen, and to answer so many messages.
    private static let patience = Duration.seconds(300)
    /// What messages may add to a relay's memory: the keys that are kept of topics, and marks of messages.
    static let growthGoal = 16 << 20
    /// The topics of one person: as the seed spells it, and as deployed servers do.
    private static let topicsOfOne = 2

    private let plan: StatusBenchPlan
    private let place: StatusBenchPlan.Place
    private let world: World

    init(_ plan: StatusBenchPlan, _ place: StatusBenchPlan.Place, world: World) {
        (self.plan, self.place, self.world) = (plan, place, world)
    }

    /// What stands around a relay.
    private struct Scene {
        let node: WakuNodeSimulator
        let people: StoredPeople
        let stage: RelayProcess
        let pid: Int32
        /// From the start of the process until the node was asked to listen.
        let startSpan: Duration
        /// Memory that is resident then.
        let resident: Int
    }

    /// - Returns: whether every message was answered for less than it takes to make a topic's key, and memory
    ///   stayed within its bound.
    func run(_ report: inout BenchReport, topicKey: Duration) async throws -> Bool {
        report.add("followed_people", plan.people)
        report.add("followed_topics", plan.people * Self.topicsOfOne)
        let few = try await withRelay(min(Self.few, plan.people), "few") { ($0.startSpan, $0.resident) }
        return try await withRelay(plan.people, "all") { scene in
            report.add("followed_start_seconds_few", few.0.inSeconds, digits: 2)
            report.add("followed_start_seconds", scene.startSpan.inSeconds, digits: 2)
            report.add("followed_resident_bytes_few", few.1)
            report.add("followed_resident_bytes", scene.resident)
            report.add("followed_resident_bytes_added", scene.resident - few.1)
            report.add("followed_messages", plan.messages)
            let (cost, growth) = try await messages(scene, &report)
            report.add("followed_cost_to_topic_key", cost / topicKey.inSeconds)
            report.add("followed_growth_goal_bytes", Self.growthGoal)
            return cost < topicKey.inSeconds && growth <= Self.growthGoal
        }
    }

    /// What the topics take by themselves, as the ingress holds them. Measured before anything else: what was
    /// given back by then would be used again.
    func table() -> Int {
        let followed = FollowedTopics()
        let before = ProcessUsage.own().residentBytes
        // Four bytes of a hash each, so they are as good as drawn.
        followed.begin(
            with: (0..<plan.people * Self.topicsOfOne).lazy.map { _ in
                UInt32(truncatingIfNeeded: world.random())
            })
        let after = ProcessUsage.own().residentBytes
        return withExtendedLifetime(followed) { max(0, after - before) }
    }

    // MARK: Messages

    /// - Returns: of either kind the larger one: seconds of the relay's own CPU time for a message, and bytes
    ///   that all of them have added to its memory.
    private func messages(
        _ scene: Scene, _ report: inout BenchReport
    ) async throws -> (cost: Double, growth: Int) {
        // Again and again about the same people: their keys are in memory once each was asked about. What an
        // answer brings at most is known to the link from the first one, which is the longest.
        let same = plan.samePeople
        try await ask((0..<same).map { $0 }, scene, atOnce: 4 * Self.atOnce)
        try await ask((0..<4 * Self.atOnce).map { $0 % same }, scene, atOnce: 4 * Self.atOnce)
        var most = (cost: 0.0, growth: 0)
        for (name, numbers) in [
            ("kept", (0..<plan.messages).map { $0 % same }),
            // About somebody else each time: so many keys are read, and no more than the bound are kept.
            ("read", Array(same..<same + plan.messages))
        ] {
            let before = try usage(scene)
            try await ask(numbers, scene, atOnce: Self.atOnce)
            let after = try usage(scene)
            let cost = (after.cpu - before.cpu).inSeconds / Double(plan.messages)
            let growth = after.residentBytes - before.residentBytes
            most = (max(most.cost, cost), max(most.growth, growth))
            report.add("followed_\(name)_cpu_microseconds_a_message", cost * 1e6, digits: 1)
            report.add("followed_\(name)_resident_bytes_added", growth)
        }
        return most
    }

    private func usage(_ scene: Scene) throws(BenchError) -> ProcessUsage {
        guard let usage = ProcessUsage.of(scene.pid) else { throw BenchError(.processFault) }
        return usage
    }

    /// Asks about these people, and waits for the answers.
    ///
    /// - Throws: `.setUpRefused` when one stays away.
    private func ask(_ numbers: [Int], _ scene: Scene, atOnce: Int) async throws {
        let queries = numbers.map { scene.people.query(about: $0, at: 0) }
        for start in stride(from: 0, to: queries.count, by: atOnce) {
            let some = queries[start..<min(queries.count, start + atOnce)]
            let wanted = scene.node.counters.accepted + some.count
            let now = scene.node.network.now
            for (at, query) in some.enumerated() {
                var query = query
                query.timestamp = now + Int64(at)
                scene.node.inject(query)
            }
            guard try await wait(until: { scene.node.counters.accepted >= wanted }) else {
                throw BenchError(.setUpRefused)
            }
        }
    }

    private func wait(until isSo: () -> Bool) async throws -> Bool {
        let until = world.instant() + Self.patience
        while !isSo() {
            guard world.instant() < until else { return false }
            try await world.sleep(world.instant() + .milliseconds(2))
        }
        return true
    }

    // MARK: The relay

    private func withRelay<Found: Sendable>(
        _ people: Int, _ folder: String, _ body: (Scene) async throws -> Found
    ) async throws -> Found {
        let group = MultiThreadedEventLoopGroup.singleton
        let node = WakuNodeSimulator(on: WakuNetworkSimulator(world: world), eventLoopGroup: group)
        // As the guide has it: a node at its default forgets what a poll comes late for.
        node.turn { $0.cacheMessages = 5_000 }
        try await node.start()
        let authority = try CertificateAuthority()
        let key = APNsKey()
        let apns = try APNsSimulator(
            APNsSimulatorConfiguration(environment: .production, keys: [key.registration()]),
            authority: authority, eventLoopGroup: group)
        do {
            let directory = try place.makeDirectory(folder)
            var relay = RelayPlan(
                executable: place.executable, directory: directory,
                apnsURL: "https://127.0.0.1:\(try await apns.start())", authority: authority.certificatePEM,
                apnsKey: key.privateKeyPEM)
            (relay.team, relay.keyID) = (key.team, key.keyID)
            let result = try await withStage(&relay, node, people, body)
            await node.stop()
            await apns.stop()
            return result
        } catch {
            await node.stop()
            await apns.stop()
            throw error
        }
    }

    private func withStage<Found: Sendable>(
        _ relay: inout RelayPlan, _ node: WakuNodeSimulator, _ count: Int,
        _ body: (Scene) async throws -> Found
    ) async throws -> Found {
        let instance = StagedInstance.status(
            "status-load", .generate(world), node: node.url ?? "", ["queries_per_minute: 10000000"])
        relay.others = [instance]
        guard let name = ConfiguredName(instance.name) else { throw BenchError(.badPlan) }
        let people = StoredPeople(of: name, bundle: relay.bundle, world: world)
        let stage = try RelayProcess(relay, world: world)
        try await people.fill(
            count, path: "\(relay.stateDirectory)/relay.sqlite", keyFile: "\(relay.keys)/storage.keys")
        do {
            let began = world.instant()
            try stage.launch()
            // It has its subscription once it knows whom to follow.
            guard try await wait(until: { node.isSubscribed || stage.hasEnded }), !stage.hasEnded else {
                throw BenchError(.relayNotReady)
            }
            let span = world.instant() - began
            let pid = try await stage.ready(within: Self.patience).pid
            // A few polls later what the start alone needed is given back.
            let polls = node.counters.received + 8
            guard try await wait(until: { node.counters.received >= polls }),
                let usage = ProcessUsage.of(pid)
            else { throw BenchError(.relayNotReady) }
            let found = try await body(
                Scene(
                    node: node, people: people, stage: stage, pid: pid, startSpan: span,
                    resident: usage.residentBytes))
            _ = await stage.stop(within: .seconds(30))
            return found
        } catch {
            await stage.kill()
            throw error
        }
    }
}
