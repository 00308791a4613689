import PushModel
import PushTesting
import Simulators
import StatusPush
import Testing
import WakuIngress
import WebClient
import WireFormats

@testable import RelayProgram

/// A Waku node and a gorush over real sockets there; log, `/status` and doctor here.
@Suite("What an operator of a Status instance is told", .timeLimit(.minutes(30)))
struct StatusOperatorTests {
    /// How often the log tells so.
    private func told(_ phase: String, _ alert: String, _ stage: RelayStage) -> Int {
        stage.log.all.count {
            $0.contains("\"event\":\"alert \(phase)\"") && $0.contains("\"alert\":\"\(alert)\"")
                && $0.contains(",\"note\":\"main\"")
        }
    }

    /// An alert ends by itself; it may have been there before, while the relay started.
    private func isCleared(_ alert: String, _ relay: RunningRelay) async throws {
        try await asked(for: "no \(alert)") { !(try await relay.admin("/status").text.contains(alert)) }
        let stage = relay.stage
        try await asked(for: "a line of its end") {
            let raised = told("raised", alert, stage)
            return raised > 0 && told("cleared", alert, stage) == raised
        }
    }

    /// An alert that is raised stands in log, `/status`, metrics and the doctor's list, and names nobody.
    private func isShown(_ alert: String, _ relay: RunningRelay, hidden: [String] = []) async throws {
        _ = try Operator(relay)
        try await asked(for: alert) { try await relay.admin("/status").text.contains(alert) }
        let status = try await relay.admin("/status").text
        var shell = Shell(facts: facts(), world: .live, out: { _ in }, err: { _ in })
        shell.waitPatiently()
        let found = await RelayChecks(try relay.stage.configuration(), shell).check()
            .first { $0.subject == "\(alert) main" }
        #expect(found?.severity == .warning, "\(alert)")
        try await asked(for: "the metric of \(alert)") {
            let metrics = try await relay.admin("/metrics").text
            return metrics.contains("sealbell_alert{alert=\"\(alert)\",subject=\"main\"} 1")
        }
        for word in hidden { #expect(!(status + relay.stage.log.all.joined()).contains(word)) }
    }

    /// Two faults at once are enough.
    private static var few: FaultRunLimits {
        var limits = FaultRunLimits()
        (limits.least, limits.after) = (2, .zero)
        return limits
    }

    enum Silence: CaseIterable, Sendable {
        /// The node answers no poll; it answers, and has no peers.
        case away, alone

        func turn(_ knobs: inout WakuNodeKnobs, isOver: Bool) {
            switch self {
            case .away: knobs.polls = isOver ? .asItShould : .unavailable
            case .alone: knobs.peers = isOver ? .connected : .none
            }
        }
    }

    @Test(
        "A node that is away for long, or alone, is told, and its return is", arguments: Silence.allCases)
    func unheard(_ silence: Silence) async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            let node = stage.sandbox.waku.node
            func hasty(_ around: inout Surroundings) {
                around.spans.watch.unheardAfter = .milliseconds(200)
                around.spans.waku.healthEvery = .milliseconds(100)
                around.spans.waku.tick = .milliseconds(50)
            }
            try await stage.run(spans: hasty) { relay in
                try await relay.listens()
                try await asked(for: "an end of the start's alert") {
                    !(try await relay.admin("/status").text.contains("instance_unheard"))
                }
                node.turn { silence.turn(&$0, isOver: false) }
                try await isShown("instance_unheard", relay)
                node.turn { silence.turn(&$0, isOver: true) }
                try await isCleared("instance_unheard", relay)
                try await relay.listens()
            }
        }
    }

    // That it ends after an hour is the ingress's count, which has a clock of its own in its tests.
    @Test("Messages that the node lost are told where no store has them")
    func missed() async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            let node = stage.sandbox.waku.node
            func hasty(_ around: inout Surroundings) {
                around.spans.waku.storeAttempts = 1
            }
            node.turn { $0.hasStore = false }
            try await stage.run(spans: hasty) { relay in
                try await relay.listens()
                // The node's answer is lost on its way, and what it held with it.
                node.turn { $0.polls = .hangsUp }
                try await asked(for: "a poll that fails") {
                    stage.log.all.contains { $0.contains("\"note\":\"node-away\"") }
                }
                node.turn { $0.polls = .asItShould }
                try await isShown("messages_missed", relay)
            }
        }
    }

    @Test("A node that hears and publishes nothing is told, until it takes an answer")
    func refused() async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            let node = stage.sandbox.waku.node
            func hasty(_ around: inout Surroundings) {
                around.spans.waku.refusalsBelieved = 1
                around.spans.waku.refusals = Self.few
            }
            try await stage.run(spans: hasty) { relay in
                try await relay.listens()
                var cast = try StatusCast(at: try relay.statusKey(), .apns)
                node.turn { $0.publishing = .badRequest }
                node.inject(cast.registration())
                try await relay.statusReaches(4, "topics")
                node.inject(cast.query())
                let point = Hex.encode(cast.person.point.compressed)
                try await isShown("answers_refused", relay, hidden: [cast.token, point])
                node.turn { $0.publishing = .asItShould }
                node.inject(cast.query())
                try await isCleared("answers_refused", relay)
            }
        }
    }

    @Test("The longest token that Google's phones register can be forgotten")
    func forgetting() async throws {
        try await RelayStage.statusRelay { relay in
            let long = String(repeating: "cAPA91b:", count: StatusLimits.deviceTokenBytes / 8)
            var cast = try StatusCast(at: try relay.statusKey(), .fcm, token: long)
            relay.stage.sandbox.waku.node.inject(cast.registration())
            try await relay.statusReaches(1, "registered")
            let person = try Operator(relay)
            let shorter = await person.run("forget", "address", input: String(long.dropLast()))
            #expect(shorter.status == .failed)
            let longer = await person.run("forget", "address", input: long + "a")
            #expect(longer.status == .usage)
            let told = await person.run("forget", "address", input: long)
            #expect(told.out == ["Forgotten: 1 device, 0 environments."])
        }
    }

    @Test("A gorush that takes no call is told, until it takes one; dead tokens are not its fault")
    func gateway() async throws {
        try await GorushDouble.with { gorush in
            let keys = ", gorush: { url: \"http://127.0.0.1:\(gorush.port)\" }"
            try await RelayStage.with(RelayStage.status(keys)) { stage in
                let node = stage.sandbox.waku.node
                func hasty(_ around: inout Surroundings) { around.spans.statusHost.gatewayFaults = Self.few }
                try await stage.run(spans: hasty) { relay in
                    try await relay.listens()
                    var cast = try StatusCast(at: try relay.statusKey(), .apns)
                    node.inject(cast.registration())
                    try await relay.statusReaches(1, "registered")
                    func request(_ answer: GorushDouble.Answer) async throws {
                        let calls = gorush.calls.count
                        gorush.turn(answer)
                        node.inject(cast.request())
                        try await asked(for: "a call") { gorush.calls.count > calls }
                    }
                    try await request(.other(500, "{}"))
                    try await request(.failing([0], byToken: false))
                    try await request(.other(500, "{}"))
                    #expect(!stage.log.all.contains { $0.contains("gateway_failing") })
                    try await request(.other(200, "not JSON"))
                    try await isShown("gateway_failing", relay, hidden: [cast.token])
                    try await request(.taken)
                    try await isCleared("gateway_failing", relay)
                }
            }
        }
    }
}
