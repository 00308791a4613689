import PushModel
import Testing

@testable import Bench

@Suite("What is asked of a measurement", .timeLimit(.minutes(30)))
struct PlanTests {
    private func plan(_ change: (inout RelayBenchPlan) -> Void = { _ in }) -> RelayBenchPlan {
        var plan = RelayBenchPlan(
            target: .running(state: "/nowhere"), executable: "/bin/true", directory: "/nowhere")
        change(&plan)
        return plan
    }

    @Test("The plan as it comes is sane, at its bounds too")
    func sane() {
        #expect(throws: Never.self) { try plan().check() }
        let bounds: [(inout RelayBenchPlan) -> Void] = [
            { ($0.devicesPerRequest, $0.devices) = (1000, 1000) }, { $0.rate = 0.001 },
            { $0.seconds = 86_400 }, { $0.connections = 10_000 }, { $0.contentBytes = 2_000 },
            { $0.devicesPerRequest = 1 }
        ]
        for change in bounds { #expect(throws: Never.self) { try plan(change).check() } }
    }

    @Test("Numbers out of bounds, or that contradict each other, are refused before anything starts")
    func refused() async {
        let faults: [(inout RelayBenchPlan) -> Void] = [
            { $0.devicesPerRequest = 0 }, { $0.devicesPerRequest = 1001 }, { $0.rate = 0 }, { $0.rate = -1 },
            { $0.seconds = 0 }, { $0.seconds = 86_401 }, { $0.seconds = .nan }, { $0.connections = 0 },
            { $0.connections = 10_001 }, { ($0.devicesPerRequest, $0.devices) = (10, 9) },
            { $0.extraRegistrations = -1 }, { $0.contentBytes = 0 }, { $0.contentBytes = 2_001 }
        ]
        for (index, change) in faults.enumerated() {
            #expect(throws: BenchError(.badPlan), "\(index)") { try plan(change).check() }
        }
        await #expect(throws: BenchError(.badPlan)) {
            _ = try await RelayBench(plan { $0.seconds = 0 }, world: .live) { _ in }.run()
        }
        for change in [
            { $0.requests = 0 }, { $0.connections = 0 }, { $0.streams = 0 }, { $0.rate = 0 },
            { $0.bodyBytes = 1 }, { $0.bodyBytes = 5_001 }
        ] as [(inout SenderPlan) -> Void] {
            var plan = SenderPlan(host: "127.0.0.1", port: 1)
            change(&plan)
            let bench = SenderBench(plan, world: .live)
            await #expect(throws: BenchError(.badPlan)) { _ = try await bench.run() }
        }
    }

    @Test("A relay under trial is told its files, its sink and, with FCM, the account")
    func configuration() {
        var relay = RelayPlan(
            executable: "/bin/true", directory: "/trial", apnsURL: "https://127.0.0.1:7", authority: "",
            apnsKey: "")
        let instances = relay.loads.map { $0.makeInstance(.live) }
        let without = relay.configuration(instances)
        #expect(without.contains("state: /trial/state\n") && without.contains("url: \"https://127.0.0.1:7\""))
        #expect(without.contains("bind: \"127.0.0.1:0\"") && without.contains("pushes_per_minute: 0"))
        #expect(!without.contains("fcm"))
        relay.fcm = .init(url: "https://f", tokenURL: "https://t", serviceAccount: "{}")
        let lines = relay.configuration(instances).split(separator: "\n").map(String.init)
        let fcm = lines.firstIndex { $0.hasPrefix("    fcm:") } ?? 0
        #expect(lines[fcm + 1] == "      service_account: /trial/fcm.json")
        #expect(
            lines[fcm + 2] == "      url: \"https://f\"" && lines[fcm + 3] == "      token_url: \"https://t\""
        )
        #expect(lines.last == "    fcm_app: load", "\(lines.suffix(2))")
        #expect(!lines.contains { $0.contains("\t") })
    }

    @Test("A sender's tally: every number once, ten resends at most, and what became of each")
    func tally() {
        let tally = SenderTally(limit: 3)
        #expect([tally.take(), tally.take(), tally.take(), tally.take()] == [0, 1, 2, nil])
        let now = UnixTime(seconds: 1)
        func answer(_ outcome: Outcome, _ reason: Reason = .ok, _ fate: Answer.Fate = .answered) -> Answer {
            Answer(outcome, reason, sentAt: now, fate: fate)
        }
        #expect(!tally.answered(answer(.accepted), attempt: 1))
        for attempt in 1...10 {
            #expect(tally.answered(answer(.retry(after: nil), .connectionLost, .unknown), attempt: attempt))
        }
        #expect(!tally.answered(answer(.retry(after: nil), .connectionLost, .unknown), attempt: 11))
        #expect(tally.answered(answer(.retry(after: nil), .connectionLost, .unprocessed), attempt: 1))
        #expect(tally.answered(answer(.retry(after: nil), .serviceUnavailable), attempt: 1))
        #expect(!tally.answered(answer(.rejected, .payloadTooLarge), attempt: 1))
        #expect(tally.failures == 2)
        var report = BenchReport()
        tally.write(to: &report)
        let text = report.json()
        #expect(
            text == #"{"sent":0,"accepted":1,"failed":2,"resent_unknown":10,"resent_unprocessed":1,"#
                + #""resent_on_request":1,"first_fault":"\#(Reason.connectionLost.rawValue)"}"#)
    }
}
