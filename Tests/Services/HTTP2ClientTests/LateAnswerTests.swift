import NIOCore
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import HTTP2Client

/// A peer that answers when a test says so, and a client whose time is the test's.
private struct Stage {
    /// A request that waits for its answer.
    struct Held: Sendable {
        let connection: RawConnection
        let stream: Int32
        let body: String

        func answer() { connection.later(.zero) { $0.answer(stream) } }
    }

    let clock = ManualClock()
    let peer: RawPeer
    let client: Client
    private let waiting: Noted<[Held]>
    private let pinged: Noted<RawConnection?>

    /// - Parameter answers: whether a request is answered at once, by its connection's number, from 1, and
    ///   its body.
    init(
        _ change: (inout HTTP2Options) -> Void = { _ in },
        answersPings: @Sendable @escaping (Int) -> Bool = { _ in true },
        answers: @Sendable @escaping (Int, String) -> Bool
    ) async throws {
        var options = HTTP2Options.patient
        options.maximumConnections = 1
        options.requestDeadline = .seconds(20)
        change(&options)
        let waiting = Noted<[Held]>([])
        let pinged = Noted<RawConnection?>(nil)
        var script = RawPeer.Script()
        script.pinged = { connection, _ in pinged.change { $0 = connection } }
        script.answersPings = answersPings
        script.requested = { connection, stream, body, _ in
            let body = String(decoding: body, as: UTF8.self)
            if answers(connection.number, body) { return connection.answer(stream) }
            waiting.change { $0.append(Held(connection: connection, stream: stream, body: body)) }
        }
        peer = try await RawPeer(script)
        client = try Client(port: peer.port, options: options, world: clock.world(seed: 1))
        self.waiting = waiting
        self.pinged = pinged
    }

    /// What came and is not answered, once there are so many.
    func held(_ count: Int) async -> [Held] {
        await waiting.until(for: "requests at the peer") { $0.count >= count }
        return waiting.value
    }

    func send(_ body: String, isUnrepeatable: Bool = false) async throws -> HTTP2Answer {
        let slot = try await client.pool.reserve()
        return await client.pool.request(
            client.request(body: Array(body.utf8)), on: slot, sendBefore: clock.instant + .seconds(600),
            isUnrepeatable: isUnrepeatable)
    }

    /// Sends what nobody answers, until it is given up.
    func giveUp(_ body: String) async throws -> HTTP2Answer {
        async let answer = send(body)
        await waiting.until(for: body) { held in held.contains { $0.body == body } }
        clock.advance(by: .seconds(20))
        return try await answer
    }

    /// Both have ended when this returns.
    func running<Result: Sendable>(_ body: @Sendable @escaping (Stage) async throws -> Result) async throws
        -> Result
    {
        let result = try await runs({ try await client.pool.run() }, during: { try await body(self) })
        try await peer.close()
        return result
    }

    /// Answers the last PING, which the peer did not.
    func pong() {
        pinged.value?.later(.zero) { connection in
            connection.send(
                RawHTTP2Frame(
                    kind: RawHTTP2Frame.Kind.ping, flags: 1, payload: Array(repeating: 0, count: 8)))
        }
    }

    func connections(_ count: Int) async throws {
        try await asked(for: "connection \(count)") { client.pool.snapshot().connections >= count }
    }
}

@Suite("Answers that come late, and connections that say nothing", .timeLimit(.minutes(30)))
struct LateAnswerTests {
    @Test("A request that is given up may be answered yet, and gives the next one more time")
    func late() async throws {
        let stage = try await Stage { _, _ in false }
        try await stage.running { stage in
            let answer = try await stage.giveUp("push-1")
            #expect(answer.cause == .deadlineExceeded && answer.fate == .unknown)
            let late = try #require(answer.late)
            #expect(stage.client.pool.snapshot().listened == 1)
            stage.clock.advance(by: .seconds(10))
            await stage.held(1)[0].answer()
            let word = try #require(await late.answer())
            #expect(word.cause == .answered && word.fate == .answered && word.status == 200)
            #expect(word.connection == answer.connection && word.sentAt == answer.sentAt)
            #expect(stage.peer.seen.resets.isEmpty)
            let snapshot = stage.client.pool.snapshot()
            #expect(snapshot.late == 1 && snapshot.listened == 0 && snapshot.timeouts == 1)
            #expect(snapshot.deadline == .seconds(45), "it took thirty")
        }
    }

    @Test("Two minutes after its hand-over nobody listens any more, and the stream is cancelled")
    func never() async throws {
        let stage = try await Stage { _, _ in false }
        try await stage.running { stage in
            let answer = try await stage.giveUp("push-1")
            #expect(stage.peer.seen.resets.isEmpty)
            async let word = answer.late?.answer()
            stage.clock.advance(by: .seconds(100))
            #expect(await word == nil)
            #expect(await stage.peer.until { $0.resets.first?.payload == RawHTTP2Frame.word(8) })
            #expect(stage.client.pool.snapshot().listened == 0)
        }
    }

    @Test("What is given up beyond the bound is cancelled at once, and a body that was held back always is")
    func bound() async throws {
        let stage = try await Stage({ $0.lateStreams = 1 }) { _, _ in false }
        try await stage.running { stage in
            async let first = stage.send("push-1")
            async let second = stage.send("push-2")
            async let half = stage.send(String(repeating: "a", count: 70_000))
            _ = await stage.held(2)
            #expect(await stage.peer.until { $0.dataBytes > 60_000 })
            stage.clock.advance(by: .seconds(20))
            let answers = try await [first, second, half]
            #expect(answers.map(\.cause) == Array(repeating: .deadlineExceeded, count: 3))
            #expect(answers.map(\.fate) == [.unknown, .unknown, .unprocessed])
            #expect(answers.count { $0.late != nil } == 1 && answers[2].late == nil)
            #expect(await stage.peer.until { $0.resets.count == 2 })
        }
    }

    @Test("Who waits for a late answer waits no longer than the connection, the pool and its own task")
    func ends() async throws {
        let stage = try await Stage { _, _ in false }
        let cancelled = try await stage.running { stage in
            let answer = try await stage.giveUp("push-1")
            await withTaskGroup(of: HTTP2Answer?.self) { group in
                group.addTask { await answer.late?.answer() }
                group.cancelAll()
                for await word in group { #expect(word == nil) }
            }
            let lost = try await stage.giveUp("push-2")
            let held = await stage.held(2)
            held[1].connection.later(.zero) { $0.close() }
            #expect(await lost.late?.answer() == nil)
            try await stage.connections(1)
            return try await stage.giveUp("push-3")
        }
        #expect(await cancelled.late?.answer() == nil, "the pool has ended")
    }

    @Test("Beside a connection that answers PING and no request a second one is opened, which serves")
    func mute() async throws {
        let stage = try await Stage({ $0.pingAfterSilence = .seconds(15) }) { number, _ in number > 1 }
        try await stage.running { stage in
            async let first = stage.send("push-1")
            _ = await stage.held(1)
            stage.clock.advance(by: .seconds(15))
            #expect(await stage.peer.until { $0.pings == 1 })
            stage.clock.advance(by: .seconds(5))
            let lost = try await first
            #expect(lost.fate == .unknown)
            // The pool looks once a second.
            stage.clock.advance(by: .seconds(1))
            try await stage.connections(2)
            #expect(try await stage.send("push-2").status == 200)
            #expect(stage.peer.count(of: "push-2") == 1)
            // The first may answer yet, as long as it is listened to.
            await stage.held(1)[0].answer()
            #expect(await lost.late?.answer()?.status == 200)
        }
    }

    @Test("Three expired requests without an answer between them end a connection, for good")
    func expired() async throws {
        let stage = try await Stage({ $0.expiredRequests = 3 }) { connection, body in
            connection > 1 && body.hasPrefix("next")
        }
        try await stage.running { stage in
            async let first = stage.send("push-1")
            async let second = stage.send("push-2")
            async let third = stage.send("push-3")
            _ = await stage.held(3)
            stage.clock.advance(by: .seconds(20))
            let answers = try await [first, second, third]
            #expect(answers.allSatisfy { $0.fate == .unknown && $0.late != nil })
            let next = try await stage.send("next-1")
            #expect(next.status == 200 && next.connection != answers[0].connection)
            #expect(stage.client.pool.snapshot().connections == 1, "the first takes nothing more")
        }
    }

    @Test("A call on an idle connection that died without a word leaves on a fresh one, and rings")
    func deadIdle() async throws {
        let stage = try await Stage({ $0.proofDeadline = .seconds(2) }, answersPings: { $0 > 1 }) { _, _ in
            true
        }
        try await stage.running { stage in
            let first = try await stage.send("push-1")
            #expect(first.status == 200)
            stage.clock.advance(by: .seconds(30))
            async let call = stage.send("call-1", isUnrepeatable: true)
            #expect(await stage.peer.until { $0.pings == 1 })
            #expect(stage.peer.count(of: "call-1") == 0, "its bytes have not left")
            stage.clock.advance(by: .seconds(2))
            #expect(try await call.status == 200)
            #expect(stage.peer.count(of: "call-1") == 1 && stage.peer.seen.connections == 2)
        }
    }

    @Test("A call behind a silence waits for the PONG, and other pushes go before it")
    func provedByPong() async throws {
        let pongs = Mutex(false)
        let stage = try await Stage(answersPings: { _ in pongs.withLock { $0 } }) { _, _ in true }
        try await stage.running { stage in
            let first = try await stage.send("push-1")
            #expect(first.status == 200)
            stage.clock.advance(by: .seconds(1))
            async let call = stage.send("call-1", isUnrepeatable: true)
            #expect(await stage.peer.until { $0.pings == 1 })
            #expect(try await stage.send("push-2").status == 200)
            #expect(stage.peer.count(of: "call-1") == 0)
            // The peer's answer to the PING, at last.
            stage.pong()
            #expect(try await call.status == 200)
            #expect(stage.peer.seen.connections == 1 && stage.peer.seen.pings == 1)
            // Heard from just now: no PING goes before the next.
            #expect(try await stage.send("call-2", isUnrepeatable: true).status == 200)
            #expect(stage.peer.seen.pings == 1)
        }
    }

    @Test("A pool that winds down gives up what is under way at that moment, and what comes")
    func windDown() async throws {
        let stage = try await Stage({ $0.requestDeadline = .seconds(300) }) { _, _ in false }
        try await stage.running { stage in
            async let request = stage.send("push-1")
            _ = await stage.held(1)
            stage.client.pool.windDown(within: .seconds(12))
            stage.clock.advance(by: .seconds(12))
            let answer = try await request
            #expect(answer.cause == .deadlineExceeded && answer.fate == .unknown)
        }
    }
}
