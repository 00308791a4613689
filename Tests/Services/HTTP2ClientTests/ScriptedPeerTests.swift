import CNghttp2
import HTTP2Client
import NIOCore
import PushModel
import PushTesting
import Synchronization
import Testing

/// A body that names its request.
private func body(_ id: Int) -> [UInt8] { Array("push-\(id)".utf8) }

private func options(_ change: (inout HTTP2Options) -> Void) -> HTTP2Options {
    var options = HTTP2Options.patient
    options.maximumConnections = 1
    change(&options)
    return options
}

/// Counts streams against the limit that holds: the last that was acknowledged, or a later one that may have
/// arrived.
private struct LimitJudge {
    var open = 0
    var sent: [Int] = []
    private var last = 0
    private(set) var worst = 0
    private(set) var most = 0
    private var held: [Int32] = []

    mutating func acknowledged() { if !sent.isEmpty { last = sent.removeFirst() } }

    mutating func began() {
        open += 1
        most = max(most, open)
        worst = max(worst, open - max(last, sent.max() ?? 0))
    }

    /// Which streams are to be answered now that this one came whole. From the sixth on they are held until
    /// eleven are open, so that the raised limit is used whatever the machine's load.
    mutating func settle(_ stream: Int32, _ number: Int) -> [Int32] {
        held.append(stream)
        if number > 5, most <= 10 { return [] }
        defer { held = [] }
        return held
    }
}

extension Client {
    /// Sends one request for each id at once.
    fileprivate func sendAll(_ ids: Range<Int>, body make: @Sendable @escaping (Int) -> [UInt8] = body)
        async throws
        -> [HTTP2Answer]
    {
        try await withThrowingTaskGroup(of: HTTP2Answer.self) { group in
            for id in ids { group.addTask { try await send(request(id: id, body: make(id))) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }
}

@Suite("The client against a scripted peer", .timeLimit(.minutes(30)))
struct ScriptedPeerTests {
    @Test("Nothing is asked before the peer's SETTINGS")
    func lateSettings() async throws {
        var script = RawPeer.Script()
        script.opened = { $0.later(.milliseconds(200)) { $0.settings([:]) } }
        let peer = try await RawPeer(script)
        let answers = try await Client(port: peer.port, options: options { _ in }).running {
            try await $0.sendAll(0..<5)
        }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(!peer.seen.requestBeforeSettings)
        try await peer.close()
    }

    @Test("The stream limit is obeyed at 1, raised, lowered to 1, held at 0 and raised again")
    func movingLimit() async throws {
        let limits = Mutex(LimitJudge())
        /// The answers that a request sets free, each a little later.
        @Sendable func answer(_ streams: [Int32], on connection: RawConnection) {
            connection.later(.milliseconds(3)) { connection in
                for stream in streams {
                    limits.withLock { $0.open -= 1 }
                    connection.answer(stream)
                }
            }
        }
        @Sendable func turn(_ connection: RawConnection, to limit: Int) {
            limits.withLock { $0.sent.append(limit) }
            connection.settings([3: UInt32(limit)])
        }
        var script = RawPeer.Script()
        script.opened = { turn($0, to: 1) }
        script.acknowledged = { _ in limits.withLock { $0.acknowledged() } }
        script.began = { _, _ in limits.withLock { $0.began() } }
        script.requested = { connection, stream, _, number in
            switch number {
            case 5: turn(connection, to: 20)
            case 60: turn(connection, to: 1)
            case 100:
                turn(connection, to: 0)
                connection.later(.milliseconds(150)) { turn($0, to: 10) }
            default: break
            }
            answer(limits.withLock { $0.settle(stream, number) }, on: connection)
        }
        let peer = try await RawPeer(script)
        let answers = try await Client(port: peer.port, options: options { _ in }).running {
            try await $0.sendAll(0..<150)
        }
        #expect(answers.count == 150)
        #expect(answers.allSatisfy { $0.status == 200 })
        let (worst, most) = limits.withLock { ($0.worst, $0.most) }
        #expect(worst <= 0)
        #expect(most > 10 && most <= 20)
        #expect(Set(peer.seen.bodies).count == 150 && peer.seen.bodies.count == 150)
        try await peer.close()
    }

    @Test("GOAWAY: what is above the last stream is sent once more elsewhere, what is below is waited for")
    func goawayBelow() async throws {
        let streams = Mutex<[Int32]>([])
        var script = RawPeer.Script()
        script.opened = { $0.settings([3: 100]) }
        script.requested = { connection, stream, _, number in
            guard connection.number == 1 else { return connection.answer(stream) }
            streams.withLock { $0.append(stream) }
            guard number == 5 else { return }
            let seen = streams.withLock { $0.sorted() }
            connection.goaway(last: seen[1])
            connection.later(.milliseconds(50)) { connection in
                connection.answer(seen[0])
                connection.answer(seen[1])
            }
        }
        let peer = try await RawPeer(script)
        let client = try Client(port: peer.port, options: options { _ in })
        let answers = try await client.running { try await $0.sendAll(0..<5) }
        #expect(answers.allSatisfy { $0.status == 200 && $0.fate == .answered })
        #expect(client.pool.snapshot().resent == 3)
        #expect(client.pool.snapshot().goaways == 1)
        // Five on the first connection, of which three came again on the second.
        #expect(peer.seen.bodies.count == 8)
        #expect(Dictionary(grouping: peer.seen.bodies, by: { $0 }).values.filter { $0.count == 2 }.count == 3)
        #expect(peer.seen.connections == 2)
        try await peer.close()
    }

    @Test("A graceful GOAWAY in two steps loses nothing")
    func goawayTwoSteps() async throws {
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, number in
            if connection.number == 1, number == 1 {
                connection.goaway(last: Int32.max)
                connection.later(.milliseconds(30)) { $0.goaway(last: stream) }
            }
            connection.later(.milliseconds(60)) { $0.answer(stream) }
        }
        let peer = try await RawPeer(script)
        let client = try Client(port: peer.port, options: options { $0.streamsPerConnection = 1 })
        let answers = try await client.running { try await $0.sendAll(0..<4) }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(peer.seen.bodies.count == 4)
        try await peer.close()
    }

    @Test("RST_STREAM(NO_ERROR) after a whole answer counts as the answer")
    func resetAfterAnswer() async throws {
        var script = RawPeer.Script()
        script.requested = { _, _, _, _ in }
        script.began = { connection, stream in
            connection.answer(stream)
            connection.reset(stream, 0)
        }
        let peer = try await RawPeer(script)
        let large = [UInt8](repeating: 0x61, count: 60_000)
        let client = try Client(port: peer.port, options: options { _ in })
        let answers = try await client.running { client in
            try await client.sendAll(0..<300) { _ in Array(large.prefix(200)) }
        }
        #expect(answers.allSatisfy { $0.status == 200 && $0.fate == .answered && $0.cause == .answered })
        try await peer.close()
    }

    @Test("A refused stream is sent once more, and not a third time")
    func refused() async throws {
        var script = RawPeer.Script()
        let refusals = Mutex(1)
        script.requested = { connection, stream, body, _ in
            let refuse =
                body == Array("push-2".utf8)
                || refusals.withLock { left in
                    left -= 1
                    return left >= 0
                }
            if refuse { connection.reset(stream, 7) } else { connection.answer(stream) }
        }
        let peer = try await RawPeer(script)
        let client = try Client(port: peer.port, options: options { _ in })
        let (first, second) = try await client.running { client in
            (
                try await client.send(client.request(body: body(1))),
                try await client.send(client.request(body: body(2)))
            )
        }
        #expect(first.status == 200)
        #expect(peer.count(of: "push-1") == 2)
        #expect(second.cause == .refused && second.fate == .unprocessed && second.status == 0)
        #expect(second.unanswered.outcome == .retry(after: nil) && second.unanswered.fate == .unprocessed)
        #expect(peer.count(of: "push-2") == 2)
        #expect(client.pool.snapshot().refused == 3)
        try await peer.close()
    }

    @Test("A peer that answers no PING is given up, its requests' fate unknown, and replaced")
    func noPong() async throws {
        var script = RawPeer.Script()
        script.answersPings = { $0 > 1 }
        script.requested = { connection, stream, _, _ in
            if connection.number > 1 { connection.answer(stream) }
        }
        let peer = try await RawPeer(script)
        let client = try Client(
            port: peer.port,
            options: options {
                $0.pingAfterSilence = .milliseconds(100)
                $0.pongDeadline = .seconds(2)
            })
        let (lost, next) = try await client.running { client in
            (
                try await client.send(client.request(body: body(1))),
                try await client.sendUntilAnswered(client.request(body: body(2)))
            )
        }
        #expect(lost.cause == .connectionLost && lost.fate == .unknown)
        #expect(lost.unanswered.reason == .connectionLost)
        #expect(peer.count(of: "push-1") == 1)
        #expect(next.status == 200)
        #expect(peer.seen.connections >= 2 && peer.seen.pings >= 1)
        try await peer.close()
    }

    @Test("A quiet peer that answers PINGs keeps its connection")
    func pongs() async throws {
        var script = RawPeer.Script()
        script.requested = { _, _, _, _ in }
        // The first request of a connection is stream 1.
        script.pinged = { connection, count in if count == 4 { connection.answer(1) } }
        let peer = try await RawPeer(script)
        let client = try Client(
            port: peer.port,
            options: options {
                $0.pingAfterSilence = .milliseconds(50)
                $0.pongDeadline = .seconds(600)
            })
        let answer = try await client.running { try await $0.send($0.request(body: body(1))) }
        #expect(answer.status == 200)
        #expect(peer.seen.pings >= 4 && peer.seen.connections == 1)
        try await peer.close()
    }

    @Test("A connection that dies in the middle of an answer leaves the fate unknown")
    func killedMidAnswer() async throws {
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, _ in
            connection.answer(stream, ends: false)
            connection.later(.milliseconds(20)) { $0.close() }
        }
        let peer = try await RawPeer(script)
        let client = try Client(port: peer.port, options: options { _ in })
        let answer = try await client.running { try await $0.send($0.request(body: body(1))) }
        #expect(answer.cause == .connectionLost && answer.fate == .unknown && answer.status == 0)
        #expect(peer.count(of: "push-1") == 1)
        try await peer.close()
    }

    @Test("When windows are full, connections open by themselves up to the bound")
    func fullWindows() async throws {
        // No window is ever updated: a connection carries two bodies of 30,000 bytes and no third.
        let peer = try await RawPeer()
        let client = try Client(
            port: peer.port,
            options: options {
                $0.maximumConnections = 4
                $0.growAfter = .milliseconds(10)
            })
        let answers = try await client.running { client in
            var answers: [HTTP2Answer] = []
            for round in 0..<6 {
                answers += try await client.sendAll(round..<round + 1) { _ in
                    [UInt8](repeating: 0x61, count: 30_000)
                }
            }
            return answers
        }
        #expect(answers.filter { $0.status == 200 }.count >= 6)
        #expect(peer.seen.connections >= 3)
        try await peer.close()
    }

    @Test(
        "A body that the window holds back is unprocessed at its deadline: the peer cannot have acted on half"
    )
    func heldBack() async throws {
        var script = RawPeer.Script()
        script.requested = { _, _, _, _ in }
        let peer = try await RawPeer(script)
        let client = try Client(port: peer.port, options: options { $0.requestDeadline = .seconds(1) })
        let answer = try await client.running { client in
            try await client.send(client.request(body: [UInt8](repeating: 0x61, count: 70_000)))
        }
        #expect(answer.cause == .deadlineExceeded && answer.fate == .unprocessed)
        #expect(peer.seen.bodies.isEmpty)
        try await peer.close()
    }

    @Test("After the lease nothing leaves")
    func leaseRanOut() async throws {
        let peer = try await RawPeer()
        let client = try Client(port: peer.port, options: options { _ in })
        let answer = try await client.running { client in
            let slot = try await client.pool.reserve()
            return await client.pool.request(client.request(), on: slot, sendBefore: .now - .milliseconds(1))
        }
        #expect(answer.cause == .leaseRanOut && answer.fate == .unprocessed)
        #expect(answer.unanswered.reason == .leaseRanOut)
        #expect(peer.seen.headerBlocks.isEmpty)
        try await peer.close()
    }

    @Test("A body that waited for window does not leave after its lease: the stream is cancelled")
    func leaseRanOutWaiting() async throws {
        let began = Noted<RawConnection?>(nil)
        var script = RawPeer.Script()
        script.began = { connection, _ in began.change { $0 = connection } }
        let peer = try await RawPeer(script)
        let clock = Mutex(Duration.zero)
        var world = World.live
        world.instant = { .now + clock.withLock(\.self) }
        let client = try Client(port: peer.port, options: options { _ in }, world: world)
        let answer = try await client.running { client in
            async let answer = client.pool.request(
                client.request(body: [UInt8](repeating: 0x61, count: 70_000)),
                on: try await client.pool.reserve(), sendBefore: .now + .seconds(30))
            // All that the window holds has come, and the rest is held back when the lease ends.
            _ = await peer.until { $0.dataBytes == 65_535 }
            clock.withLock { $0 += .seconds(31) }
            began.value?.later(.zero) { connection in
                for stream in [0, 1] as [Int32] {
                    connection.send(
                        RawHTTP2Frame(
                            kind: RawHTTP2Frame.Kind.windowUpdate, stream: stream,
                            payload: RawHTTP2Frame.word(100_000))
                    )
                }
            }
            return try await answer
        }
        #expect(answer.cause == .leaseRanOut && answer.fate == .unprocessed)
        _ = await peer.until { !$0.resets.isEmpty }
        #expect(peer.seen.resets.map(\.payload) == [RawHTTP2Frame.word(8)])
        #expect(peer.seen.bodies.isEmpty && peer.seen.dataBytes == 65_535)
        try await peer.close()
    }

    @Test("Connections that the peer closes for being idle cost the next request no wait")
    func idleClose() async throws {
        var script = RawPeer.Script()
        let wanted = Noted(0)
        script.opened = { connection in
            connection.settings([:])
            // Nobody has asked for this one: it goes unused, and that must not happen.
            if connection.number > wanted.value { connection.close() }
        }
        script.requested = { connection, stream, _, _ in
            connection.answer(stream)
            connection.later(.milliseconds(20)) { $0.close() }
        }
        let peer = try await RawPeer(script)
        // Anyone who waits here waits for longer than the test lasts.
        let client = try Client(
            port: peer.port,
            options: options {
                $0.backoffBase = .seconds(3_600)
                $0.backoffCap = .seconds(3_600)
            })
        let (answers, opened) = try await client.running { client in
            var answers: [HTTP2Answer] = []
            for number in 1...5 {
                wanted.change { $0 = number }
                answers.append(try await client.send(client.request(id: number)))
                // The pool sees it go; nobody wants another meanwhile.
                try await asked(for: "a connection that is gone") { client.pool.snapshot().closed >= number }
            }
            return (answers, client.pool.snapshot().opened)
        }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(opened == 5)
        try await peer.close()
    }

    @Test("A cancelled reservation and an unused slot leak no stream")
    func cancelledReservation() async throws {
        var script = RawPeer.Script()
        script.opened = { $0.settings([3: 1]) }
        let peer = try await RawPeer(script)
        // A pool asks the time when it queues a caller, and again when it looks after the queue.
        let asked = Signal()
        var world = World.live
        world.instant = {
            asked.changed()
            return .now
        }
        let client = try Client(port: peer.port, options: options { _ in }, world: world)
        let answer = try await client.running { client -> HTTP2Answer in
            let held = try await client.pool.reserve()
            await #expect(throws: CancellationError.self) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try await client.pool.reserve() }
                    await asked.until { client.pool.snapshot().waiting == 1 }
                    group.cancelAll()
                    try await group.waitForAll()
                }
            }
            #expect(client.pool.snapshot().waiting == 0)
            held.release()
            held.release()
            // Dropped without a word: it goes back by itself.
            _ = try await client.pool.reserve()
            return try await client.send(client.request())
        }
        #expect(answer.status == 200)
        #expect(client.pool.snapshot().inFlight == 0)
        try await peer.close()
    }

    @Test("A connection is replaced before its stream ids run out")
    func streamIDs() async throws {
        let peer = try await RawPeer()
        let client = try Client(port: peer.port, options: options { $0.requestsPerConnection = 10 })
        let answers = try await client.running { try await $0.sendAll(0..<35) }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(peer.seen.bodies.count == 35 && Set(peer.seen.bodies).count == 35)
        #expect(peer.seen.connections == 4)
        try await peer.close()
    }

    @Test("A replaced connection takes no more requests")
    func replaced() async throws {
        let peer = try await RawPeer()
        let client = try Client(port: peer.port, options: options { _ in })
        let tags = try await client.running { client in
            let first = try await client.send(client.request())
            client.pool.replace(first.connection)
            let second = try await client.send(client.request())
            return [first.connection, second.connection]
        }
        #expect(tags[0] != tags[1])
        #expect(peer.seen.connections == 2)
        try await peer.close()
    }

    @Test("Paths and credentials are never indexed; apns-id plants its name once and is never indexed again")
    func neverIndexed() async throws {
        let peer = try await RawPeer()
        _ = try await Client(port: peer.port, options: options { _ in }).running { client in
            for id in 1...3 { _ = try await client.send(client.request(id: id)) }
            return true
        }
        var inflater: OpaquePointer?
        #expect(nghttp2_hd_inflate_new(&inflater) == 0)
        defer { nghttp2_hd_inflate_del(inflater) }
        var never: [[String: Bool]] = []
        for block in peer.seen.headerBlocks { never.append(inflate(block, inflater)) }
        #expect(never.count == 3)
        #expect(never.allSatisfy { $0[":path"] == true && $0["authorization"] == true })
        #expect(never.map { $0["apns-id"] } == [false, true, true])
        #expect(never.allSatisfy { $0["apns-push-type"] == false })
        // From the second request on the shared fields are references of one byte each.
        #expect(peer.seen.headerBlocks[1].count < peer.seen.headerBlocks[0].count)
        try await peer.close()
    }

    /// Names of a block's fields, and whether each is marked never-indexed.
    private func inflate(_ block: [UInt8], _ inflater: OpaquePointer?) -> [String: Bool] {
        var fields: [String: Bool] = [:]
        block.withUnsafeBufferPointer { bytes in
            var (at, flags) = (0, Int32(0))
            repeat {
                var field = nghttp2_nv()
                flags = 0
                let start = UnsafeMutablePointer(mutating: bytes.baseAddress).map { $0 + at }
                let count = nghttp2_hd_inflate_hd(inflater, &field, &flags, start, bytes.count - at, 1)
                guard count >= 0 else { return }
                at += count
                if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                    let name = String(
                        decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self)
                    fields[name] = field.flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0
                }
            } while flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) == 0 && at <= bytes.count
            nghttp2_hd_inflate_end_headers(inflater)
        }
        return fields
    }
}
