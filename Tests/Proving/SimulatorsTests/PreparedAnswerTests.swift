import NIOHTTP1
import PushModel
import Testing
import WebClient

@testable import Simulators

@Suite("Answers that a test prepares, and connections that lapse", .timeLimit(.minutes(30)))
struct PreparedAnswerTests {
    /// Tells the control endpoint, and expects that it obeys.
    private func turn(
        _ knobs: String, _ port: Int, at place: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await PlainClient.ask(
            port: port, trusting: nil, .POST, "/production/knobs", body: Array(knobs.utf8))
        #expect(answer.status == 200, sourceLocation: place)
    }

    private func running(_ body: (APNsStage, _ control: Int) async throws -> Void) async throws {
        let stage = try await APNsStage()
        let control = SimulatorControl([stage.simulator], eventLoopGroup: stage.group)
        try await body(stage, try await control.start())
        await control.stop()
        await stage.simulator.stop()
    }

    @Test("Any status with any body, once or twice, on whichever connection comes; then the service's own")
    func prepared() async throws {
        try await running { stage, control in
            try await turn(
                """
                {"connection": {"answers": [
                  {"status": 404, "body": "<html>", "contentType": "text/html", "times": 1},
                  {"status": 421, "retryAfter": "7", "times": 2, "isJudged": true}]}}
                """, control)
            var answers: [Seen.Answered] = []
            for _ in 0..<2 {
                let client = try await stage.client()
                var watch = Sightings(client)
                // One token a connection: another would be one update too many.
                let fields = try stage.fields()
                for _ in 0..<2 {
                    try await client.send(fields, body: APNsStage.body)
                    answers.append(try await watch.answer())
                }
            }
            #expect(answers.map(\.status) == [404, 421, 421, 200])
            #expect(answers[0].body == "<html>" && answers[0].fields["content-type"] == "text/html")
            #expect(answers[1].body.isEmpty && answers[1].fields["retry-after"] == "7")
            // Two were judged and accepted, whatever was said then.
            #expect(stage.simulator.counters.accepted == 3)
        }
    }

    @Test("The service's own answer, later; prepared anew it is given anew; and none any more")
    func own() async throws {
        try await running { stage, control in
            var (client, watch, fields) = try await stage.watched()
            func status() async throws -> Int {
                try await client.send(fields, body: APNsStage.body)
                return try await watch.answer().status
            }
            try await turn(#"{"connection": {"answers": [{"delayMilliseconds": 5}]}}"#, control)
            #expect(try await status() == 200)
            #expect(stage.simulator.connectionKnobs.answers == [PreparedAnswer(own: .milliseconds(5))])
            for _ in 0..<2 {
                try await turn(#"{"connection": {"answers": []}}"#, control)
                try await turn(#"{"connection": {"answers": [{"status": 503, "times": 1}]}}"#, control)
                #expect(try await status() == 503)
                #expect(try await status() == 200)
            }
        }
    }

    @Test("Connections that fall mute answer PING and no request, and later ones are as ever")
    func mute() async throws {
        try await running { stage, control in
            let client = try await stage.client()
            var watch = Sightings(client)
            try await client.ping()
            try await watch.next { $0 == .ping(answer: true) }
            try await turn(#"{"lapse": "mute"}"#, control)
            let before = watch.all.count
            try await client.send(try stage.fields(), body: APNsStage.body)
            try await client.ping()
            try await watch.next { $0 == .ping(answer: true) }
            let next = try await stage.client()
            var other = Sightings(next)
            try await next.send(try stage.fields(), body: APNsStage.body)
            #expect(try await other.answer().status == 200)
            let answers = watch.all[before...].filter { if case .answer = $0 { true } else { false } }
            #expect(answers.isEmpty)
            #expect(stage.simulator.counters.received == 1)
        }
    }

    @Test("Connections that are dead answer nothing, and do not end")
    func dead() async throws {
        try await running { stage, control in
            let client = try await stage.client()
            var watch = Sightings(client)
            try await client.ping()
            try await watch.next { $0 == .ping(answer: true) }
            try await turn(#"{"lapse": "dead"}"#, control)
            let before = watch.all.count
            try await client.ping()
            try await client.send(try stage.fields(), body: APNsStage.body)
            let next = try await stage.client()
            var other = Sightings(next)
            try await next.send(try stage.fields(), body: APNsStage.body)
            #expect(try await other.answer().status == 200)
            #expect(stage.simulator.openConnections == 2)
            stage.simulator.killConnections()
            try await watch.next { $0 == .closed }
            #expect(watch.all[before...].allSatisfy { $0 == .closed || $0.isLoss })
            #expect(stage.simulator.counters.received == 1)
        }
    }

    @Test(
        "What is unknown or out of range is refused",
        arguments: [
            #"{"connection": {"answers": [{"status": 199}]}}"#,
            #"{"connection": {"answers": [{"status": 1000}]}}"#,
            #"{"connection": {"answers": [{"statu": 200}]}}"#, #"{"connection": {"answers": {}}}"#,
            #"{"connection": {"answers": [{"times": -1}]}}"#, #"{"lapse": "asleep"}"#, #"{"lapse": true}"#
        ])
    func refused(_ knobs: String) async throws {
        try await running { stage, control in
            let answer = try await PlainClient.ask(
                port: control, trusting: nil, .POST, "/production/knobs", body: Array(knobs.utf8))
            #expect(answer.status == 400)
            #expect(stage.simulator.connectionKnobs.answers.isEmpty)
        }
    }
}

extension Seen {
    /// A stream that ended with its connection.
    fileprivate var isLoss: Bool { if case .lost = self { true } else { false } }
}
