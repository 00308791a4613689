import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// oxend and storage nodes over real sockets there; log, `/health/ready`, `/status` and doctor here.
@Suite("What an operator of a Session instance is told", .timeLimit(.minutes(30)))
struct SessionOperatorTests {
    /// Waits for a line of the log.
    private func told(_ phase: String, _ alert: String, _ stage: RelayStage) async throws {
        try await asked(for: "\(alert) \(phase)") {
            stage.log.all.contains {
                $0.contains("\"event\":\"alert \(phase)\"") && $0.contains("\"alert\":\"\(alert)\"")
                    && $0.contains(",\"note\":\"main\"")
            }
        }
    }

    private func isReady(_ relay: RunningRelay) async throws -> Bool {
        try await relay.admin("/health/ready?instance=main").status == 200
    }

    /// What the doctor says of the relay and an alert.
    private func doctor(_ alert: String, _ stage: RelayStage) async throws -> Finding? {
        var shell = Shell(facts: facts(), world: .live, out: { _ in }, err: { _ in })
        shell.waitPatiently()
        return await RelayChecks(try stage.configuration(), shell).check()
            .first { $0.subject == "\(alert) main" }
    }

    enum Silence: CaseIterable, Sendable {
        /// oxend does not answer; it knows of no node; no node greets.
        case oxend, nodes, greetings

        func begin(_ network: SessionNetworkSimulator) {
            switch self {
            case .oxend: network.turnDaemon { $0.greets = false }
            case .nodes: network.block(swarms: [nil, nil, nil])
            case .greetings: for node in 0..<3 { network.turn(node) { $0.greets = false } }
            }
        }

        func end(_ network: SessionNetworkSimulator) {
            switch self {
            case .oxend: network.turnDaemon { $0.greets = true }
            case .nodes: network.block(swarms: [5, 5, 5])
            case .greetings: for node in 0..<3 { network.turn(node) { $0.greets = true } }
            }
        }
    }

    @Test(
        "A link without oxend, nodes or greetings is told, takes subscriptions, and its end is told",
        arguments: Silence.allCases)
    func unheard(_ silence: Silence) async throws {
        try await RelayStage.with(RelayStage.session()) { stage in
            let network = stage.sandbox.session
            silence.begin(network)
            func impatient(_ around: inout Surroundings) {
                around.spans.watch.unheardAfter = .milliseconds(200)
                // What never greets is dialled again.
                around.spans.swarm.dialDeadline = .milliseconds(500)
                around.spans.swarm.nodesEvery = .milliseconds(500)
            }
            try await stage.run(spans: impatient) { relay in
                _ = try Operator(relay)
                try await told("raised", "instance_unheard", stage)
                try await asked(for: "a store that is well") { try await isReady(relay) }
                let phone = try SessionPhone(.apns)
                let arrivals = stage.apns.subscribe(token: phone.token)
                #expect(try await phone.subscribe(at: relay) == [.added])
                let finding = try #require(try await doctor("instance_unheard", stage))
                #expect(finding.severity == .warning)
                #expect(try await relay.statistic("connections")?.int64 == 0)
                silence.end(network)
                try await told("cleared", "instance_unheard", stage)
                try await network.watch(1)
                network.store("hello", for: phone)
                #expect(try phone.message(try await arrivals.next("a push")).text == "hello")
                #expect(try await doctor("instance_unheard", stage) == nil)
                #expect(try await isReady(relay))
            }
        }
    }

    @Test("With no bound for one account a flood of its messages stays within the outbox")
    func flood() async throws {
        let text = RelayStage.session() + "limits: { outbox: { rows: 1000 }, pushes_per_minute: 0 }\n"
        try await RelayStage.with(text) { stage in
            let network = stage.sandbox.session
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run(hold: .milliseconds(20)) { relay in
                let phone = try SessionPhone(.apns)
                #expect(try await phone.subscribe(at: relay) == [.added])
                try await network.watch(1)
                for number in 0..<1_500 { network.store("\(number)", for: phone) }
                try await relay.until("notifications", reaches: 4_500)
                try await asked(for: "notices for which there is no room") {
                    try await relay.admin("/metrics").text.contains(
                        #/sealbell_session_notices_total\{[^}]*outcome="overloaded"[^}]*\} [1-9]/#)
                }
                #expect(try await relay.owed() <= 1_000)
                stage.apns.turn { $0.shutdownUntil = nil }
                try await relay.drained()
                let arrivals = stage.apns.subscribe(token: phone.token)
                network.store("after the flood", for: phone)
                let delivery = try await arrivals.next("a push") { delivery in
                    (try? phone.message(delivery).text) == "after the flood"
                }
                #expect(try phone.message(delivery).text == "after the flood")
            }
        }
    }

    @Test("Accounts that most storage nodes refuse are told as a number, until they are taken again")
    func refused() async throws {
        try await RelayStage.with(RelayStage.session()) { stage in
            let network = stage.sandbox.session
            for node in 0..<2 { network.turn(node) { $0.answers = .refusal(1) } }
            func hasty(_ around: inout Surroundings) {
                // Refused again and again, so that no look at it comes too late.
                around.spans.swarm.renewal = .milliseconds(100)...(.milliseconds(200))
                around.spans.swarm.refusedFor = .seconds(2)
            }
            try await stage.run(spans: hasty) { relay in
                _ = try Operator(relay)
                let phone = try SessionPhone(.apns)
                #expect(try await phone.subscribe(at: relay) == [.added])
                try await told("raised", "watches_refused", stage)
                let status = try await relay.admin("/status").text
                #expect(status.contains("watches_refused"))
                #expect(!status.contains(phone.account.bytes.reveal { Hex.encode($0) }))
                #expect(try await doctor("watches_refused", stage)?.severity == .warning)
                for node in 0..<2 { network.turn(node) { $0.answers = .asItShould } }
                try await told("cleared", "watches_refused", stage)
            }
        }
    }
}
