import AtRest
import CoreMetrics
import Delivery
import MarmotPush
import MemoryStore
import NostrIngress
import PostgresStore
import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing

@Suite("Several processes that listen for one key", .timeLimit(.minutes(30)))
struct SharedListeningTests {
    @Test(
        "Each wrap is opened by one of three; one dies, and none of its share is lost",
        arguments: SharedEngine.allCases)
    func death(_ engine: SharedEngine) async throws {
        let fleet = try await SharedFleet(3, engine)
        try await fleet.run {
            await fleet.settle()
            let first = fleet.inject(60)
            await fleet.heard(by: [0, 1, 2])
            #expect(await fleet.opened(60) == first)
            #expect(fleet.count == 60, "each once, though all three have heard all of it")
            #expect(fleet.ingresses.count { $0.speaks } == 1)
            // A renewal later: what came before it is known to have been opened.
            await fleet.pass(.seconds(100))
            await fleet.kill(2)
            let second = fleet.inject(60)
            await fleet.heard(by: [0, 1])
            let own = fleet.count - 60
            #expect((1..<60).contains(own), "some of them fell to the dead one")
            // Its lease ends; the two that live read of it, and share what it left.
            for _ in 0..<3 { await fleet.pass(.seconds(100)) }
            #expect(await fleet.opened(120, after: 60) == second)
            #expect(fleet.count == 120, "each once")
            #expect(fleet.ingresses[0].speaks != fleet.ingresses[1].speaks)
            // From now on they share all of it.
            let third = fleet.inject(60)
            await fleet.heard(by: [0, 1])
            #expect(await fleet.opened(180, after: 120) == third)
        }
    }

    @Test("One that leaves in good order hands its share over at once")
    func leaving() async throws {
        let fleet = try await SharedFleet(2)
        try await fleet.run {
            await fleet.settle()
            await fleet.pass(.seconds(100))
            await fleet.leave(1)
            let wraps = fleet.inject(40)
            await fleet.heard(by: [0])
            // It has only to read that the other has left, if it has not done so already.
            await fleet.pass(.seconds(1))
            #expect(await fleet.opened(40) == wraps)
            #expect(fleet.count == 40 && fleet.ingresses[0].speaks)
        }
    }

    @Test("While all have only just joined, the first of them opens everything, once")
    func joining() async throws {
        let fleet = try await SharedFleet(2)
        try await fleet.run {
            await fleet.pass(.seconds(1))
            let wraps = fleet.inject(40)
            await fleet.heard(by: [0, 1])
            #expect(await fleet.opened(40) == wraps)
            #expect(fleet.count == 40)
        }
    }
}

/// Ingresses of several processes on one store and one simulated relay. The store's clock is moved by hand.
private final class SharedFleet: Sendable {
    /// Tells when a process has enrolled with the listeners.
    private struct EnrolSpy: Enrolment {
        let base: any Enrolment
        let joined: AwaitedCount

        func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
            let members = try await base.enrol(in: groups, for: span)
            if groups.count > 1 { joined.add() }
            return members
        }
    }

    private struct Process {
        let membership: Membership
        let ingress: NostrIngress
        /// Enrolments with the listeners.
        let joined: AwaitedCount
        /// Wraps heard, no matter who they fell to.
        let heard: AwaitedCount
        let isToDie = AwaitedCount()
        let isSilent = AwaitedCount()
    }

    private let rig: ListeningRig
    private let clock = ManualClock()
    private let processes: [Process]
    /// Ids of wraps opened by anybody, in order.
    private let opened: Noted<[[UInt8]]>
    private let injected = Mutex(0)
    private let dead = Mutex<Set<Int>>([])

    var ingresses: [NostrIngress] { processes.map(\.ingress) }
    /// Wraps opened by anybody.
    var count: Int { opened.value.count }

    /// With a lease that no machine is so slow as to outlast: a server's clock goes on while the test's
    /// stands.
    init(_ count: Int, _ kind: SharedEngine = .memory) async throws {
        rig = try await ListeningRig()
        let shared = MemoryStore.Shared()
        var url: String?
        if kind == .postgres { url = try await PostgresCluster.shared.freshDatabase() }
        let start = clock.now
        var limits = DeliveryLimits()
        limits.aliveFor = .seconds(300)
        let held = changing(ListeningRig.limits) { $0.heldFor = .seconds(700) }
        let keys = AtRestKeys.generate(.live)
        let opened = Noted<[[UInt8]]>([])
        var processes: [Process] = []
        for number in 0..<count {
            let owner = OwnerID(Digest16(high: UInt64(number + 1) &* 0x9E37_79B9_7F4A_7C15, low: 77))
            let (joined, heard) = (AwaitedCount(), AwaitedCount())
            var base: any Engine = MemoryStore(owner: owner, sharing: shared, clock: { [clock] in clock.now })
            if let url {
                var limits = PostgresLimits()
                limits.connections = 2
                limits.clockAhead = { [clock] in clock.now.since(start) }
                base = try await PostgresStore(
                    try PostgresAddress(url), owner: owner, limits: limits, world: clock.world(seed: 1))
            }
            let store = try await SealedStore(engine: base, keys: keys, world: clock.world(seed: 1))
            let membership = Membership(
                store: EnrolSpy(base: store, joined: joined), limits: limits, world: clock.world(seed: 2),
                journal: .silent)
            let counter = CounterSpy("sealbell_nostr_events_passed_over_total", heard)
            let ingress = try rig.ingress(
                try rig.plan(), limits: held, membership: membership, metrics: counter
            ) { event, _, _ in
                opened.change { $0.append(event.id) }
                heard.add()
            }
            processes.append(
                Process(membership: membership, ingress: ingress, joined: joined, heard: heard))
        }
        self.processes = processes
        self.opened = opened
    }

    /// Runs all of them while `body` does, once each has enrolled with the listeners.
    func run(_ body: () async throws -> Void) async throws {
        let result = await withTaskGroup(of: Void.self) { tasks -> Result<Void, any Error> in
            for process in processes {
                tasks.addTask { await Self.enrol(process) }
                // It throws nothing; the protocol's word is wider than what it does.
                tasks.addTask { try? await process.ingress.run() }
            }
            var result = Result<Void, any Error>.success(())
            for process in processes { await process.joined.wait(for: 1) }
            do { try await body() } catch { result = .failure(error) }
            for process in processes {
                process.ingress.stop()
                process.isToDie.add()
            }
            await tasks.waitForAll()
            return result
        }
        for relay in rig.relays { await relay.stop() }
        try result.get()
    }

    private static func enrol(_ process: Process) async {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await process.membership.run() }
            // As long as the test: whatever it waits for in vain ends this too.
            tasks.addTask { await process.isToDie.wait(for: 1, looks: .max) }
            await tasks.next()
            tasks.cancelAll()
        }
        process.isSilent.add()
    }

    /// Lets time pass until all have their shares.
    func settle() async { for _ in 0..<3 { await pass(.seconds(5)) } }

    /// Lets time pass, with a renewal of each that lives at its end.
    func pass(_ span: Duration) async {
        clock.advance(by: span)
        for process in living { await process.membership.renew() }
    }

    private var living: [Process] {
        let dead = dead.withLock(\.self)
        return processes.indices.filter { !dead.contains($0) }.map { processes[$0] }
    }

    /// SIGKILL: it says no word to the store.
    func kill(_ number: Int) async {
        dead.withLock { _ = $0.insert(number) }
        processes[number].isToDie.add()
        await processes[number].isSilent.wait(for: 1)
        processes[number].ingress.stop()
    }

    /// SIGTERM: the store hears of it.
    func leave(_ number: Int) async {
        dead.withLock { _ = $0.insert(number) }
        processes[number].ingress.stop()
        await processes[number].membership.renew()
    }

    /// What the relay says to all that are connected.
    func inject(_ count: Int) -> Set<[UInt8]> {
        let wraps = (0..<count).map { _ in rig.wrap() }
        injected.withLock { $0 += count }
        for wrap in wraps { rig.relays[0].inject(wrap) }
        return Set(wraps.map(\.id))
    }

    /// Waits until these processes have heard all that was injected so far.
    func heard(by numbers: [Int]) async {
        let count = injected.withLock(\.self)
        for number in numbers { await processes[number].heard.wait(for: count) }
    }

    /// What was opened after the first so many, once there are `count` in all.
    func opened(_ count: Int, after first: Int = 0) async -> Set<[UInt8]> {
        await opened.until { $0.count >= count }
        return Set(opened.value.dropFirst(first))
    }
}

/// Counts what one counter is raised by.
private final class CounterSpy: SilentMetrics, CounterHandler {
    private let label: String
    private let watch: AwaitedCount

    init(_ label: String, _ watch: AwaitedCount) {
        self.label = label
        self.watch = watch
    }

    func increment(by amount: Int64) { watch.add(Int(amount)) }
    func reset() {}

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        label == self.label ? self : NOOPMetricsHandler.instance
    }
}
