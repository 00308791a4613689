import Delivery
import PushModel
import PushTesting
import Simulators
import Testing
import ZulipPush

@testable import RelayProgram

/// Push services that are wrong once, or about one phone or one environment, over real sockets.
@Suite("A push service that is wrong for once", .timeLimit(.minutes(30)))
struct StrayFaultTests {
    /// For answers that are late on purpose: the server does not wait for them, and what takes seconds takes
    /// a fraction of one.
    private static func answersSoon(_ around: inout Surroundings) {
        around.spans.zulipReply = .milliseconds(200)
        around.limits.backoffBase = .milliseconds(50)
        around.limits.probeFirst = .milliseconds(50)
    }

    private static func halts(_ stage: RelayStage) -> [String] {
        stage.log.all.filter { $0.contains("lane halted") }
    }

    static let strays: [(name: String, stray: StrayAnswer)] = [
        ("a front end's 404", .page(404, on: .next(1))), ("a proxy's 403", .page(403, on: .next(1))),
        (
            "an answer for another",
            StrayAnswer(status: 403, body: #"{"reason":"InvalidProviderToken"}"#, on: .next(1))
        ),
        (
            "an update too many",
            StrayAnswer(status: 429, body: #"{"reason":"TooManyProviderTokenUpdates"}"#, on: .next(1))
        )
    ]

    @Test("Sixty pushes arrive, one of them at the second try, and no lane halts", arguments: strays)
    func one(_ name: String, _ stray: StrayAnswer) async throws {
        try await RelayStage.with { stage in
            try await stage.run(spans: Self.answersSoon) { relay in
                let (server, phone) = try await relay.join(.apns)
                for id in 1...60 as ClosedRange<Int64> {
                    if id == 20 { stage.apns.turn { $0.strays = [stray] } }
                    let answer = try await server.notify(DemoApp.message(id, "m"), [phone], relay)
                    #expect(answer.status == 200 && answer.dead.isEmpty)
                }
                try await relay.drained()
                #expect(stage.apns.counters.accepted == 60)
                #expect(stage.apns.counters.byReason == ["stray \(stray.status)": 1])
            }
            #expect(Self.halts(stage).isEmpty)
        }
    }

    @Test("At Google it is the same, for the token service as well")
    func google() async throws {
        try await RelayStage.with { stage in
            stage.fcm.turn { $0.tokenStrays = [.page(404, on: .next(1))] }
            try await stage.run(spans: Self.answersSoon) { relay in
                let (server, phone) = try await relay.join(.fcm)
                for id in 1...60 as ClosedRange<Int64> {
                    if id == 20 { stage.fcm.turn { $0.strays = [.page(404, on: .next(1))] } }
                    #expect(
                        try await server.notify(DemoApp.message(id, "m"), [phone], relay).status == 200)
                }
                try await relay.drained()
                #expect(stage.fcm.counters.accepted == 60)
                #expect(stage.fcm.counters.byReason == ["stray 404": 2])
            }
            #expect(Self.halts(stage).isEmpty)
        }
    }

    @Test("A key for production alone: a dead token ends there, and holds up nobody")
    func boundKey() async throws {
        try await RelayStage.with { stage in
            try stage.sandboxAPNs.bind(keyID: "F6G7H8I9J0", to: [.production])
            try await stage.run(spans: Self.answersSoon) { relay in
                let (server, phone) = try await relay.join(.apns)
                #expect(try await server.notify(DemoApp.message(1, "m"), [phone], relay).status == 200)
                try await relay.drained()
                stage.apns.turn { $0.learnsDevices = false }
                let dead = try await relay.phone(.apns, of: server)
                #expect(try await server.notify(DemoApp.message(2, "m"), [dead], relay).status == 200)
                for id in 3...20 as ClosedRange<Int64> {
                    let answer = try await server.notify(DemoApp.message(id, "m"), [phone], relay)
                    #expect(answer.status == 200 && answer.apple == 1)
                }
                try await relay.drained()
                #expect(stage.apns.counters.accepted == 19)
                #expect(stage.sandboxAPNs.counters.byReason.keys.sorted() == ["BadEnvironmentKeyIdInToken"])
                let again = try await server.notify(DemoApp.message(21, "m"), [dead], relay)
                #expect(again.dead.count == 1, "the server hears that the phone is gone")
            }
            #expect(Self.halts(stage).count == 1 && Self.halts(stage)[0].contains("apns/sandbox"))
        }
    }

    @Test(
        "Provider tokens that are refused to every push halt the lane, which is told and asks seldom"
    )
    func tokenUpdates() async throws {
        try await RelayStage.with { stage in
            let refusal = StrayAnswer(
                status: 429, body: #"{"reason":"TooManyProviderTokenUpdates"}"#, on: .share(1))
            stage.apns.turn { $0.strays = [refusal] }
            try await stage.run(spans: Self.answersSoon) { relay in
                let (server, phone) = try await relay.join(.apns)
                for id in 1...40 as ClosedRange<Int64> {
                    #expect(
                        try await server.notify(DemoApp.message(id, "m"), [phone], relay).status == 200)
                }
                try await asked(for: "a lane that halts") { !Self.halts(stage).isEmpty }
                #expect(Self.halts(stage)[0].contains("TooManyProviderTokenUpdates"))
                // What was under way when it halted, and probes after a second, two, four.
                #expect(stage.apns.counters.received < 40)
                stage.apns.turn { $0.strays = [] }
                try await relay.drained()
                #expect(stage.apns.counters.accepted == 40)
            }
        }
    }

    @Test(
        "A phone whose quota is full is seldom asked, and others' pushes leave", arguments: TokenKind.allCases
    )
    func quota(_ kind: TokenKind) async throws {
        try await RelayStage.with { stage in
            // By the hour: a quota that has room again while the test runs is asked, and filled, once more.
            stage.apns.turn { ($0.deviceLimit, $0.deviceSpan) = (30, .seconds(3_600)) }
            stage.fcm.turn {
                ($0.deviceMinuteLimit, $0.deviceHourLimit) = (nil, 30)
                $0.retryAfter = .off
            }
            let begun = ContinuousClock.now
            let limits = DeliveryLimits()
            // With the back-off of a real relay, which is what makes it ask seldom.
            try await stage.run(spans: {
                $0.spans.zulipReply = .milliseconds(200)
                ($0.limits.backoffBase, $0.limits.backoffCap) = (limits.backoffBase, limits.backoffCap)
            }) { relay in
                let server = try await relay.server()
                let full = try await relay.phone(kind, of: server)
                let other = try await relay.phone(kind, of: server)
                for id in 1...200 as ClosedRange<Int64> {
                    #expect(
                        try await server.notify(DemoApp.message(id, "m"), [full], relay).status == 200)
                    guard id % 10 == 0 else { continue }
                    let answer = try await server.notify(DemoApp.message(1_000 + id, "m"), [other], relay)
                    #expect(answer.status == 200)
                }
                try await asked(for: "twenty pushes to the other phone") {
                    let all = kind == .apns ? stage.apns.deliveries() : stage.fcm.deliveries()
                    return all.count { $0.token == other.token } == 20
                }
                let counters = kind == .apns ? stage.apns.counters : stage.fcm.counters
                // Each of the 170 that are too many would have been asked. As many may be under way when the
                // quota is used up as the window has by then; after that one goes after a second, two, four
                // and so on, and at last one in half a minute.
                let later = 7 + Int((ContinuousClock.now - begun) / .seconds(30))
                let most = limits.addressWindow + 30 + later
                #expect(counters.received - counters.accepted <= most, "\(counters)")
                #expect(try await relay.owed() > 100)
            }
            #expect(Self.halts(stage).isEmpty)
            #expect(!stage.log.all.contains { $0.contains("lane slowed") })
        }
    }
}
