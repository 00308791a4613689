@testable import HTTP2Client
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

/// Pools for many hosts, each of them a peer of the test's own.
private struct Hosts: Sendable {
    let pools: HTTP2Pools

    init(
        world: World = .live, _ change: (inout HTTP2PoolsOptions) -> Void = { _ in }
    ) throws {
        var options = HTTP2PoolsOptions()
        options.pool = .patient
        options.pool.maximumConnections = 2
        change(&options)
        pools = try HTTP2Pools(
            certificates: try TestCertificate.shared.get().pem, options: options,
            group: MultiThreadedEventLoopGroup.singleton, world: world
        ) { HTTP2HeaderTemplate(authority: $0, fixed: [("ttl", "60")], varying: []) }
    }

    func send(to authority: String, sendBefore: ContinuousClock.Instant = .now + .seconds(600)) async throws
        -> HTTP2Answer
    {
        let permit = try await pools.reserve()
        return try await pools.request(to: authority, on: permit, sendBefore: sendBefore) { template in
            let head = HTTP2Head(capacity: 20) { writer in
                writer.append("/push/00aa")
                writer.endField()
            }
            return HTTP2Request(
                template: template, head: head, authorization: nil, body: Secret(Array("{}".utf8)))
        }
    }

    func send(to peer: RawPeer) async throws -> HTTP2Answer {
        try await send(to: "127.0.0.1:\(peer.port)")
    }

    func running<Result: Sendable>(_ body: @Sendable @escaping (Hosts) async throws -> Result) async throws
        -> Result
    {
        try await runs({ try await pools.run() }, during: { try await body(self) })
    }
}

@Suite("Pools for many hosts", .timeLimit(.minutes(30)))
struct PoolsTests {
    @Test("A host that does not answer holds nothing of another")
    func apart() async throws {
        let held = Noted<[@Sendable () -> Void]>([])
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, _ in
            held.change { $0.append { connection.later(.zero) { $0.answer(stream) } } }
        }
        let (silent, good) = (try await RawPeer(script), try await RawPeer())
        try await Hosts().running { hosts in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 { group.addTask { _ = try await hosts.send(to: silent) } }
                await held.until(for: "twenty requests") { $0.count == 20 }
                for _ in 0..<20 {
                    let answer = try await hosts.send(to: good)
                    #expect(answer.status == 200)
                }
                #expect(hosts.pools.authorities == 2)
                #expect(good.seen.connections == 1)
                let snapshot = hosts.pools.snapshot()
                #expect(snapshot.answers == 20 && snapshot.requests == 40 && snapshot.inFlight == 20)
                for answer in held.value { answer() }
                try await group.waitForAll()
            }
        }
        for peer in [silent, good] { try await peer.close() }
    }

    @Test("Where all places are taken, the host that nobody has asked for longest goes for another")
    func leastRecent() async throws {
        let (first, second, third) = (try await RawPeer(), try await RawPeer(), try await RawPeer())
        try await Hosts { $0.authorities = 2 }.running { hosts in
            for peer in [first, second, first, third, first, second] {
                let answer = try await hosts.send(to: peer)
                #expect(answer.status == 200 && hosts.pools.authorities <= 2)
            }
            #expect(first.seen.connections == 1, "asked for in between, it stayed")
            #expect(second.seen.connections == 2, "it went for the third, and came for it")
            #expect(third.seen.connections == 1)
        }
        for peer in [first, second, third] { try await peer.close() }
    }

    @Test("A host that nobody sends to for a while loses its connection, and gets another when it is asked")
    func idle() async throws {
        let peer = try await RawPeer()
        let clock = ManualClock()
        try await Hosts(world: clock.world(seed: 1)).running { hosts in
            // Both clocks' moments: the world's stands still but for the test.
            let until = clock.instant + .seconds(3_600)
            let authority = "127.0.0.1:\(peer.port)"
            let answer = try await hosts.send(to: authority, sendBefore: until)
            #expect(answer.status == 200)
            try await asked(for: "a host that goes") {
                clock.advance(by: .seconds(30))
                return hosts.pools.authorities == 0
            }
            let next = try await hosts.send(to: authority, sendBefore: until)
            #expect(next.status == 200 && peer.seen.connections == 2)
        }
        try await peer.close()
    }

    @Test(
        "What is no authority is refused, and takes nobody's place",
        arguments: ["", "a/b", "a/", "u@a", "a:0", "a b", "[::1"])
    func malformed(authority: String) async throws {
        let peer = try await RawPeer()
        try await Hosts { $0.authorities = 1 }.running { hosts in
            await #expect(throws: HTTP2Error(.malformedURL)) { try await hosts.send(to: authority) }
            #expect(hosts.pools.authorities == 0)
            let answer = try await hosts.send(to: peer)
            #expect(answer.status == 200)
        }
        try await peer.close()
    }

    @Test("No more requests are under way than may be, and one that waits may be cancelled")
    func permits() async throws {
        let hosts = try Hosts { $0.authorities = 1 }
        let first = try await hosts.pools.reserve()
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { (try? await hosts.pools.reserve()) == nil }
            group.cancelAll()
            #expect(await group.next() == true)
        }
        async let second = hosts.pools.reserve()
        first.release()
        first.release()
        try await second.release()
        // Unused and let go it came back too.
        _ = try await hosts.pools.reserve()
        _ = try await hosts.pools.reserve()
    }

    @Test("A stop tells who waits for a host that does not come up, and nobody who comes after it waits")
    func stop() async throws {
        let began = Watch()
        var script = RawPeer.Script()
        script.opened = { _ in began.add() }
        let mute = try await RawPeer(script)
        let hosts = try Hosts()
        let pools = hosts.pools
        try await withThrowingTaskGroup(of: HTTP2Answer?.self) { group in
            group.addTask {
                try await pools.run()
                return nil
            }
            async let waiting = hosts.send(to: mute)
            await began.wait(for: 1)
            group.cancelAll()
            let answer = try await waiting
            #expect(answer.fate == .unprocessed && answer.cause == .connectionLost)
            while try await group.next() != nil {}
        }
        await #expect(throws: CancellationError.self) { try await pools.reserve() }
        try await mute.close()
    }
}

@Suite("Which hosts have a pool", .timeLimit(.minutes(30)))
struct PoolsStateTests {
    private final class Stub: Sendable {}
    private typealias State = PoolsState<Stub, Int>
    private let start = ContinuousClock.now

    private func use(_ state: inout State, _ authority: String, after seconds: Int) -> Stub? {
        let now = start + .seconds(seconds)
        let goes = state.pool(of: authority, at: now) { Stub() }?.goes
        state.ended(authority, at: now)
        return goes
    }

    @Test("With as many requests as places a further host always finds one, whoever is asked")
    func room() {
        let seed = UInt64.random(in: 0..<UInt64.max)
        var words = SeededRandom(seed: seed)
        var state = State(authorities: 4, idleAfter: .seconds(10))
        var underWay: [String] = []
        for step in 0..<2_000 {
            let now = start + .milliseconds(step)
            if words.next() % 2 == 0, state.take() {
                let authority = "host\(words.next() % 12)"
                _ = state.pool(of: authority, at: now) { Stub() }
                underWay.append(authority)
            } else if !underWay.isEmpty {
                let authority = underWay.remove(at: Int(words.next() % UInt64(underWay.count)))
                state.ended(authority, at: now)
                _ = state.giveBack()
            }
            #expect(state.pools.count <= 4 && underWay.count <= 4, "seed \(seed)")
        }
    }

    @Test("Of those without a request the one asked for longest ago goes, and none that has one")
    func oldest() {
        var state = State(authorities: 2, idleAfter: .seconds(10))
        let busy = state.pool(of: "a", at: start) { Stub() }?.pool
        let idle = state.pool(of: "b", at: start + .seconds(1)) { Stub() }?.pool
        state.ended("b", at: start + .seconds(1))
        let goes = use(&state, "c", after: 2)
        #expect(goes === idle && state.pools.contains { $0 === busy })
    }

    @Test("What is idle goes when its time has come, and what is under way never")
    func idle() {
        var state = State(authorities: 4, idleAfter: .seconds(10))
        _ = state.pool(of: "busy", at: start) { Stub() }
        _ = use(&state, "early", after: 0)
        _ = use(&state, "late", after: 5)
        let none = state.removeIdle(at: start + .seconds(9))
        let one = state.removeIdle(at: start + .seconds(10))
        let other = state.removeIdle(at: start + .seconds(3_600))
        #expect(none.isEmpty && one.count == 1 && other.count == 1 && state.pools.count == 1)
    }

    @Test("Who waits is served in turn, and told when nothing more is sent")
    func waiters() {
        var state = State(authorities: 1, idleAfter: .seconds(10))
        let first = state.take()
        let second = state.take()
        #expect(first && !second)
        let ids = (1...3).map { state.wait($0) }
        let cancelled = state.cancel(ids[0])
        let again = state.cancel(ids[0])
        let next = state.giveBack()
        #expect(cancelled == 1 && again == nil && next == 2)
        let told = state.stop()
        let late = state.pool(of: "a", at: start) { Stub() }
        let none = state.take()
        #expect(told == [3] && late == nil && !none)
    }
}
