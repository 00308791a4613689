import NIOCore
import PushModel
import PushTesting
import Testing

@testable import Simulators

/// Each knob is turned and seen from the other side of the socket.
@Suite("Connections misbehave as told", .timeLimit(.minutes(30)))
struct ConnectionKnobTests {
    /// A stage whose connections allow many streams from the start.
    private func wide(_ change: (inout ConnectionKnobs) -> Void = { _ in }) async throws -> APNsStage {
        try await APNsStage { configuration in
            configuration.connection.streamsAtStart = 1000
            change(&configuration.connection)
        }
    }

    private func requests(
        _ stage: APNsStage, _ numbers: Range<Int>, fields: [(String, String)]
    ) -> [([(String, String)], [UInt8])] {
        numbers.map { (fields + [("apns-id", APNsStage.id($0))], APNsStage.body) }
    }

    private func status(_ seen: Seen?) -> Int? {
        if case .answer(let answer) = seen { answer.status } else { nil }
    }

    @Test("The limit falls to one on a rejection and rises on the next acceptance")
    func sawtooth() async throws {
        let stage = try await APNsStage { $0.connection.dropsOnRejection = true }
        let client = try await stage.client()
        var watch = Sightings(client)
        let good = try stage.fields()
        let bad = good.map { $0.0 == ":path" ? ($0.0, "/3/device/ff") : $0 }
        for fields in [good, bad, good] {
            try await client.send(fields, body: APNsStage.body)
            _ = try await watch.answer()
        }
        let limits = watch.all.compactMap { seen -> UInt32? in
            if case .settings(let values) = seen { values[3] } else { nil }
        }
        #expect(limits == [1, 1000, 1, 1000])
        await stage.simulator.stop()
    }

    @Test("A good token lifts the limit though its push was refused; a bad one does not")
    func firstGoodToken() async throws {
        let stage = try await APNsStage()
        let client = try await stage.client()
        var watch = Sightings(client)
        let good = try stage.fields()
        let invalid = good.map { $0.0 == "authorization" ? ($0.0, "bearer x") : $0 }
        try await client.send(invalid, body: APNsStage.body)
        #expect(try await watch.answer().status == 403)
        #expect(!watch.all.contains(.settings([3: 1000])))
        try await client.send(good, body: [])
        try await watch.next { $0 == .settings([3: 1000]) }
        await stage.simulator.stop()
    }

    @Test("Streams above the limit are refused and not judged")
    func refuse() async throws {
        let stage = try await APNsStage {
            $0.connection.excess = .refuse
            $0.connection.answerDelay = .fixed(.seconds(2))
            $0.connection.streams = 1
        }
        var (client, watch, fields) = try await stage.watched(ignoresLimit: true)
        try await client.send(requests(stage, 0..<5, fields: fields))
        let ends = try await watch.outcomes(5)
        #expect(ends.values.filter { status($0) == 200 }.count == 1)
        #expect(ends.values.filter { if case .lost(_, 7) = $0 { true } else { false } }.count == 4)
        #expect(stage.simulator.counters.received == 1)
        await stage.simulator.stop()
    }

    @Test("Excess after the limit was acknowledged ends the connection, with the reason in the debug data")
    func excessEnds() async throws {
        let stage = try await APNsStage {
            $0.connection.excess = .goAway
            $0.connection.streams = 1
        }
        var (client, watch, fields) = try await stage.watched(ignoresLimit: true)
        try await client.send(fields, body: APNsStage.body)
        _ = try await watch.answer()
        // The request came behind our acknowledgement of the limit: both are in order on one connection.
        stage.simulator.turnConnections { $0.answerDelay = .fixed(.milliseconds(50)) }
        try await client.send(requests(stage, 0..<3, fields: fields))
        // All three began before the first of them was complete: none was judged.
        try await watch.next { $0 == .goAway(last: 1, code: 11, debug: "Maximum active streams violated") }
        try await watch.next { $0 == .closed }
        #expect(!watch.all.contains { if case .answer(let answer) = $0 { answer.stream > 1 } else { false } })
        #expect(stage.simulator.counters.accepted == 1)
        await stage.simulator.stop()
    }

    @Test("Without WINDOW_UPDATE a sender stands still at 65,535 bytes, and goes on when it comes")
    func windows() async throws {
        let stage = try await wide { $0.withholdsWindow = true }
        var (client, watch, fields) = try await stage.watched()
        let body = APNsJudgeTests.object(bytes: 4096)
        try await client.send((0..<20).map { _ in (fields, body) })
        // 15 bodies of 4,096 bytes fit, the sixteenth misses one byte.
        let first = try await watch.outcomes(15)
        #expect(first.values.allSatisfy { status($0) == 200 })
        #expect(stage.simulator.counters.received == 15)
        stage.simulator.turnConnections { $0.withholdsWindow = false }
        let rest = try await watch.outcomes(5)
        #expect(rest.count == 5)
        #expect(watch.all.contains { if case .windowUpdate(0, _) = $0 { true } else { false } })
        await stage.simulator.stop()
    }

    @Test("PING is answered, or ignored")
    func ping() async throws {
        let stage = try await wide()
        let client = try await stage.client()
        var watch = Sightings(client)
        try await client.ping()
        try await watch.next { $0 == .ping(answer: true) }
        stage.simulator.turnConnections { $0.ignoresPing = true }
        // A change reaches the connection before what is sent after it was seen: the new limit tells.
        stage.simulator.turnConnections { $0.streamsAtStart = 7 }
        try await watch.next { $0 == .settings([3: 7]) }
        let before = watch.all.count
        try await client.ping()
        try await client.send(try stage.fields(), body: APNsStage.body)
        _ = try await watch.answer()
        #expect(!watch.all[before...].contains(.ping(answer: true)))
        await stage.simulator.stop()
    }

    @Test(
        "GOAWAY after n requests names the last judged stream; the rest is not judged and may be sent again")
    func goAway() async throws {
        let stage = try await wide {
            $0.goAway = GoAwayKnob(afterRequests: 10, debugData: #"{"reason":"Shutdown"}"#)
        }
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<25, fields: fields))
        let ends = try await watch.outcomes(25)
        #expect(ends.values.filter { status($0) == 200 }.count == 10)
        #expect(ends.values.filter { if case .lost(_, 7) = $0 { true } else { false } }.count == 15)
        #expect(watch.all.contains(.goAway(last: 19, code: 0, debug: #"{"reason":"Shutdown"}"#)))
        try await watch.next { $0 == .closed }
        #expect(stage.simulator.counters.accepted == 10)
        await stage.simulator.stop()
    }

    @Test("GOAWAY below: the last k requests before it are neither judged nor answered")
    func goAwayBelow() async throws {
        let stage = try await wide { $0.goAway = GoAwayKnob(afterRequests: 10, lastStream: .below(count: 4)) }
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<10, fields: fields))
        let ends = try await watch.outcomes(10)
        let answered = ends.filter { status($0.value) == 200 }.keys.sorted()
        #expect(answered == [1, 3, 5, 7, 9, 11])
        #expect(watch.all.contains(.goAway(last: 11, code: 0, debug: "")))
        #expect(stage.simulator.counters.received == 6)
        await stage.simulator.stop()
    }

    @Test("A graceful GOAWAY comes in two steps, and all that was sent between is answered")
    func goAwayGraceful() async throws {
        let stage = try await wide {
            $0.goAway = GoAwayKnob(afterRequests: 2, lastStream: .graceful(after: .milliseconds(700)))
            $0.answerDelay = .fixed(.milliseconds(1400))
        }
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<5, fields: fields))
        let ends = try await watch.outcomes(5)
        #expect(ends.values.allSatisfy { status($0) == 200 })
        let lasts = watch.all.compactMap { if case .goAway(let last, _, _) = $0 { last } else { nil } }
        #expect(lasts == [.max, 9])
        try await watch.next { $0 == .closed }
        await stage.simulator.stop()
    }

    @Test("Closing at once behind GOAWAY loses the answers that were due")
    func goAwayAtOnce() async throws {
        let stage = try await wide {
            $0.goAway = GoAwayKnob(afterRequests: 4, end: .atOnce)
            $0.answerDelay = .fixed(.seconds(60))
        }
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<4, fields: fields))
        try await watch.next { $0 == .closed }
        #expect(!watch.all.contains { status($0) != nil })
        #expect(stage.simulator.counters.accepted == 4)
        await stage.simulator.stop()
    }

    @Test("GOAWAY can come by time, and by command")
    func goAwayByTime() async throws {
        let stage = try await wide { $0.goAway = GoAwayKnob(after: .milliseconds(20)) }
        let first = try await stage.client()
        var watch = Sightings(first)
        try await watch.next { $0 == .goAway(last: 0, code: 0, debug: "") }
        stage.simulator.turnConnections { $0.goAway = nil }
        let second = try await stage.client()
        var other = Sightings(second)
        try await other.next { if case .settings = $0 { true } else { false } }
        stage.simulator.goAway(GoAwayKnob(errorCode: 2))
        try await other.next { $0 == .goAway(last: 0, code: 2, debug: "") }
        // The plan that went by time was taken back before the second connection stood.
        #expect(other.all.count { if case .goAway = $0 { true } else { false } } == 1)
        await stage.simulator.stop()
    }

    @Test(
        "A request can be left without an answer, reset, or answered and then reset; judged or not",
        arguments: [true, false])
    func faults(_ isJudged: Bool) async throws {
        let stage = try await wide {
            $0.faults = [
                RequestFault(.neverAnswered, on: .number(1), isJudged: isJudged),
                RequestFault(.reset(code: 2), on: .number(2), isJudged: isJudged)
            ]
        }
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<3, fields: fields))
        let ends = try await watch.outcomes(2)
        #expect(ends[1] == nil)
        #expect(ends[3] == .lost(stream: 3, code: 2))
        #expect(status(ends[5]) == 200)
        #expect(stage.simulator.counters.accepted == (isJudged ? 3 : 1))
        await stage.simulator.stop()
    }

    @Test("RST_STREAM with NO_ERROR comes behind a whole answer")
    func resetAfterAnswer() async throws {
        let stage = try await wide {
            $0.faults = [RequestFault(.resetAfterAnswer, on: .every(1), isJudged: true)]
        }
        let client = try await stage.client()
        var watch = Sightings(client)
        try await client.send(try stage.fields(), body: APNsStage.body)
        #expect(try await watch.answer().status == 200)
        await stage.simulator.stop()
    }

    @Test("The socket can die in the middle of an answer's frame, earlier answers being whole")
    func killed() async throws {
        let stage = try await wide {
            $0.faults = [RequestFault(.killedMidFrame, on: .number(3), isJudged: true)]
        }
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<5, fields: fields))
        try await watch.next { $0 == .closed }
        #expect(watch.all.filter { status($0) == 200 }.count == 2)
        #expect(stage.simulator.counters.accepted == 3)
        await stage.simulator.stop()
    }

    @Test("Every frame takes the round trip that was asked for, in order")
    func roundTrip() async throws {
        let stage = try await wide { $0.roundTrip = .milliseconds(120) }
        let clock = ContinuousClock()
        let start = clock.now
        var (client, watch, fields) = try await stage.watched()
        try await client.send(requests(stage, 0..<3, fields: fields))
        let ends = try await watch.outcomes(3)
        #expect(clock.now - start >= .milliseconds(120))
        #expect(ends.values.allSatisfy { status($0) == 200 })
        guard case .settings = watch.all.first else {
            Issue.record("SETTINGS came late")
            return
        }
        let asked = clock.now
        try await client.ping()
        try await watch.next { $0 == .ping(answer: true) }
        #expect(clock.now - asked >= .milliseconds(120))
        await stage.simulator.stop()
    }

    @Test("503 Shutdown goes by the simulated clock; a share of 1 fails everything with 500")
    func failures() async throws {
        let stage = try await wide()
        var (client, watch, fields) = try await stage.watched()
        stage.simulator.turn { $0.shutdownUntil = stage.clock.now + .seconds(30) }
        try await client.send(fields, body: APNsStage.body)
        let first = try await watch.answer()
        #expect(first.status == 503)
        #expect(first.body == #"{"reason":"Shutdown"}"#)
        stage.clock.advance(by: .seconds(30))
        stage.simulator.turn { $0.errorShare = 1 }
        try await client.send(fields, body: APNsStage.body)
        #expect(try await watch.answer().status == 500)
        stage.simulator.turn { $0.errorShare = 0 }
        try await client.send(fields, body: APNsStage.body)
        #expect(try await watch.answer().status == 200)
        await stage.simulator.stop()
    }

    @Test("An offline device keeps one notification for each topic, the newest, and gets it when it is back")
    func offline() async throws {
        let stage = try await wide()
        stage.simulator.register(APNsStage.token, as: APNsDevice(topics: [APNsStage.topic], isOnline: false))
        var (client, watch, fields) = try await stage.watched()
        for number in 0..<3 {
            try await client.send(fields + [("apns-id", APNsStage.id(number))], body: APNsStage.body)
            #expect(try await watch.answer().status == 200)
        }
        // Expiration 0: now or never.
        try await client.send(
            fields + [("apns-id", APNsStage.id(9)), ("apns-expiration", "0")], body: APNsStage.body)
        _ = try await watch.answer()
        #expect(stage.simulator.bringOnline(APNsStage.token).map(\.id) == [APNsStage.id(2)])
        #expect(stage.simulator.bringOnline(APNsStage.token).isEmpty)
        await stage.simulator.stop()
    }
}
