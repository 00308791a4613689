import NIOHTTP1
import NIOPosix
import PushModel
import Testing
import WebClient

@testable import Simulators

@Suite("The control endpoint", .timeLimit(.minutes(30)))
struct ControlTests {
    @Test("Another process reads deliveries and counters, turns knobs and sets devices")
    func control() async throws {
        let stage = try await APNsStage()
        let control = SimulatorControl([stage.simulator], eventLoopGroup: stage.group)
        let port = try await control.start()
        func ask(_ method: HTTPMethod, _ path: String, _ body: String = "") async throws -> LocalCall.Answer {
            try await PlainClient.ask(port: port, trusting: nil, method, path, body: Array(body.utf8))
        }
        let turned = try await ask(
            .POST, "/production/knobs",
            """
            {"connection": {"streams": 7, "ignoresPing": true, "answerDelayMilliseconds": {"mean": 1},
              "goAway": {"afterRequests": 100, "lastStream": {"below": 3}, "end": "atOnce"},
              "faults": [{"kind": {"reset": 2}, "on": {"every": 50}, "isJudged": false}]},
             "service": {"learnsDevices": true, "deviceLimit": 9}}
            """)
        #expect(turned.status == 200)
        let knobs = stage.simulator.connectionKnobs
        #expect(knobs.streams == 7)
        #expect(knobs.ignoresPing)
        #expect(knobs.answerDelay == .exponential(mean: .milliseconds(1)))
        #expect(knobs.goAway == GoAwayKnob(afterRequests: 100, lastStream: .below(count: 3), end: .atOnce))
        #expect(knobs.faults == [RequestFault(.reset(code: 2), on: .every(50), isJudged: false)])
        #expect(stage.simulator.knobs.learnsDevices)
        #expect(stage.simulator.knobs.deviceLimit == 9)

        let set = try await ask(
            .POST, "/production/devices",
            """
            [{"token": "AB", "topics": ["org.acme.chat"], "state": "removed", "sinceMilliseconds": 12}]
            """)
        #expect(set.status == 200)
        #expect(stage.simulator.device("ab")?.state == .removed(since: UnixTime(milliseconds: 12)))

        var (client, watch, fields) = try await stage.watched()
        for number in 0..<3 {
            try await client.send(fields + [("apns-id", APNsStage.id(number))], body: APNsStage.body)
            #expect(try await watch.answer().status == 200)
        }
        let counters = try await ask(.GET, "/production/counters")
        #expect(counters.tree?["accepted"]?.integer == 3)
        let page = try await ask(.GET, "/production/deliveries?after=1&limit=1&ids=1")
        #expect(page.tree == [["number": 2, "id": .string(APNsStage.id(1))]])
        await control.stop()
        await stage.simulator.stop()
    }

    @Test(
        "What is unknown or out of range is refused and changes nothing",
        arguments: [
            #"{"connection": {"streams": 5, "stream": 5}}"#, #"{"connection": {"streams": -1}}"#, "[]", "{",
            #"{"connection": {"excess": "shrug"}}"#, #"{"service": {"errorShare": 1.5}}"#, #"{"other": {}}"#,
            #"{"connection": {"goAway": {"lastStream": "first"}}}"#,
            #"{"service": {"strays": [{"page": 404}]}}"#,
            #"{"service": {"strays": [{"page": 99, "on": {"next": 1}}]}}"#,
            #"{"service": {"strays": [{"status": 403, "text": "", "on": {"next": 1}}]}}"#
        ])
    func refusals(_ body: String) async throws {
        let stage = try await APNsStage()
        let control = SimulatorControl([stage.simulator], eventLoopGroup: stage.group)
        let port = try await control.start()
        let before = stage.simulator.connectionKnobs
        let answer = try await PlainClient.ask(
            port: port, trusting: nil, .POST, "/production/knobs", body: Array(body.utf8))
        #expect(answer.status == 400)
        #expect(answer.text == #"{"error":"knobNotKnown"}"#)
        #expect(stage.simulator.connectionKnobs == before)
        let nowhere = try await PlainClient.ask(port: port, trusting: nil, .GET, "/fcm/counters")
        #expect(nowhere.status == 404)
        await control.stop()
        await stage.simulator.stop()
    }

    @Test("A message is taken for an account, and the answer says how many were told; nothing else is taken")
    func messages() async throws {
        let network = SessionNetworkSimulator(world: .live)
        try await network.start()
        let control = SimulatorControl(
            [], posts: [network.post], eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await control.start()
        func write(_ body: String, at path: String = "/session/messages") async throws -> LocalCall.Answer {
            try await PlainClient.ask(port: port, trusting: nil, .POST, path, body: Array(body.utf8))
        }
        let account = "05" + String(repeating: "a1", count: 32)
        let taken = try await write(#"{"account": "\#(account)", "data": "c2VlIHlvdQ=="}"#)
        #expect(taken.status == 200 && taken.text == #"{"told":0}"#, "nobody watches")
        for body in [
            "", "[]", #"{"account": "\#(account)"}"#, #"{"account": "\#(account)", "data": "c2Vl!"}"#,
            #"{"account": "\#(account)a1", "data": ""}"#, #"{"account": "x", "data": ""}"#
        ] {
            let refused = try await write(body)
            #expect(refused.status == 400 && refused.text == #"{"error":"knobNotKnown"}"#, "\(body)")
        }
        #expect(try await write("{}", at: "/waku/messages").status == 404)
        #expect(try await write("{}", at: "/session/knobs").status == 404)
        await network.stop()
        // A network that has ended tells nobody, and answers.
        let late = try await write(#"{"account": "\#(account)", "data": ""}"#)
        #expect(late.text == #"{"told":0}"#)
        await control.stop()
    }
}

@Suite("Answers in the place of a judgement", .timeLimit(.minutes(30)))
struct StrayAnswerTests {
    /// A stage with its control endpoint, and one request after the other.
    private static func run(
        _ body: (
            _ stage: APNsStage, _ turn: (_ path: String, _ body: String) async throws -> Int,
            _ ask: () async throws -> (status: Int, text: String)
        ) async throws -> Void
    ) async throws {
        let stage = try await APNsStage()
        let control = SimulatorControl([stage.simulator], eventLoopGroup: stage.group)
        let port = try await control.start()
        var (client, watch, fields) = try await stage.watched()
        try await body(stage) { path, body in
            try await PlainClient.ask(
                port: port, trusting: nil, .POST, path, body: Array(body.utf8)
            ).status
        } _: {
            try await client.send(fields, body: APNsStage.body)
            let answer = try await watch.answer()
            return (answer.status, answer.body)
        }
        await control.stop()
        await stage.simulator.stop()
    }

    @Test("The next few, every second one, and a page as a proxy writes it, told by the control endpoint")
    func strays() async throws {
        try await Self.run { stage, turn, ask in
            let status = try await turn(
                "/production/knobs",
                """
                {"service": {"strays": [
                  {"status": 403, "body": "{\\"reason\\":\\"InvalidProviderToken\\"}", "on": {"next": 2}},
                  {"page": 404, "on": {"every": 2}},
                  {"status": 500, "address": "00", "on": {"share": 1}}]}}
                """)
            #expect(status == 200)
            var answers: [Int] = []
            for _ in 0..<6 { answers.append(try await ask().status) }
            #expect(answers == [403, 403, 200, 404, 200, 404])
            let page = try await turn("/production/knobs", #"{"service": {"deviceLimit": 100}}"#)
            #expect(page == 200)
            #expect(try await ask().status == 200, "another knob does not begin the count anew")
            let over = try await turn("/production/knobs", #"{"service": {"strays": null}}"#)
            #expect(over == 200)
            for _ in 0..<4 { #expect(try await ask().status == 200) }
            #expect(stage.simulator.counters.byReason["stray 403"] == 2)
        }
    }

    @Test("A key is bound to the other environment, and back; another one is not known")
    func keys() async throws {
        try await Self.run { stage, turn, ask in
            #expect(try await ask().status == 200)
            let key = #"[{"keyID": "\#(stage.key.keyID)", "environments": ["sandbox"]}]"#
            #expect(try await turn("/production/keys", key) == 200)
            let refused = try await ask()
            #expect(refused.status == 403 && refused.text.contains("BadEnvironmentKeyIdInToken"))
            let both = key.replacing("[\"sandbox\"]", with: "[\"sandbox\", \"production\"]")
            #expect(try await turn("/production/keys", both) == 200)
            #expect(try await ask().status == 200)
            for wrong in [
                #"[{"keyID": "OTHEROTHER", "environments": []}]"#,
                #"[{"keyID": "\#(stage.key.keyID)", "environments": ["moon"]}]"#, "[{}]", "{}"
            ] {
                #expect(try await turn("/production/keys", wrong) == 400)
            }
            #expect(try await ask().status == 200)
        }
    }
}

@Suite("What the simulators keep is bounded", .timeLimit(.minutes(30)))
struct BoundTests {
    @Test("A double is known within the bound, and ids beyond it are forgotten")
    func ids() {
        var set = IDSet(capacity: 1000)
        let ids = (1...5000).map { Digest16(high: 0x0190_0000_0000_7000, low: UInt64($0)) }
        for id in ids {
            let isNew = set.insert(id)
            #expect(isNew)
        }
        for id in ids.suffix(1000) {
            let isNew = set.insert(id)
            #expect(!isNew)
        }
        let isForgotten = set.insert(ids[0])
        #expect(isForgotten)
    }

    @Test("The log keeps the newest deliveries and pages through them")
    func ring() {
        var log = DeliveryLog(capacity: 10, bodyBytes: 1 << 20, doubles: 10)
        for number in 1...35 { log.record(Self.delivery(number, bytes: 1)) }
        #expect(log.deliveries(after: 0, limit: 100).map(\.number) == Array(26...35))
        #expect(log.deliveries(after: 30, limit: 2).map(\.number) == [31, 32])
        #expect(log.deliveries(after: 35, limit: 2).isEmpty)
    }

    @Test("Bodies are bounded together, and the newest delivery always stays")
    func bytes() {
        var log = DeliveryLog(capacity: 10, bodyBytes: 100, doubles: 10)
        for number in 1...5 { log.record(Self.delivery(number, bytes: 40)) }
        #expect(log.deliveries(after: 0, limit: 100).map(\.number) == [4, 5])
        log.record(Self.delivery(6, bytes: 500))
        #expect(log.deliveries(after: 0, limit: 100).map(\.number) == [6])
    }

    static func delivery(_ number: Int, bytes: Int) -> Delivery {
        Delivery(
            number: number, id: "", token: "", topic: "", pushType: nil, priority: 10, expirationSeconds: nil,
            collapseID: nil, body: Array(repeating: 0, count: bytes), receivedAt: UnixTime(seconds: 0),
            isDouble: false)
    }
}

@Suite("The bare sink", .timeLimit(.minutes(30)))
struct BareSinkTests {
    @Test("It answers 200 to everything and counts doubles")
    func sink() async throws {
        let authority = try CertificateAuthority()
        let sink = BareSink(authority: authority, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await sink.start()
        let client = try await RawHTTP2Client.connect(
            port: port, trusting: authority, group: MultiThreadedEventLoopGroup.singleton)
        var watch = Sightings(client)
        let fields = [
            (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/00")
        ]
        let ids = (0..<50).map { APNsStage.id($0 % 40) }
        try await client.send(ids.map { (fields + [("apns-id", $0)], [1, 2, 3]) })
        let ends = try await watch.outcomes(50)
        #expect(
            ends.values.allSatisfy {
                if case .answer(let answer) = $0 { answer.status == 200 } else { false }
            })
        #expect(sink.counters.received == 50)
        #expect(sink.counters.doubles == 10)
        await sink.stop()
    }
}
