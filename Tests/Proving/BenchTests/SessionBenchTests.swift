import PushModel
import Testing

@testable import Bench

@Suite("What Session costs", .timeLimit(.minutes(30))) struct SessionBenchTests {
    private func plan(_ change: (inout SessionBenchPlan) -> Void = { _ in }) -> SessionBenchPlan {
        var plan = SessionBenchPlan(rounds: 3)
        (plan.notices, plan.accounts, plan.nodes, plan.stored) = (50, 20, 2, 300)
        change(&plan)
        return plan
    }

    @Test("Each part does its work and has its row")
    func rows() async throws {
        let report = try await SessionBench(plan(), world: .live).run().report
        for name in ["devices_1_bytes_200", "devices_3_bytes_2500"] {
            #expect((report.count("\(name)_notices_per_second") ?? 0) > 0, "\(name)")
            for primitive in [
                "bencode", "storage_hash", "keyed_hash", "row_look_up", "plaintext", "nonce",
                "xchacha20_poly1305", "base64", "blake2b_256"
            ] {
                #expect(report.rows.contains { $0.name == "\(name)_\(primitive)_microseconds" })
            }
        }
        #expect(report.count("swarm_accounts") == 20 && report.count("start_subscriptions") == 300)
        #expect(report.rows.contains { $0.name == "swarm_seconds" })
        #expect(report.count("start_table_bytes") != nil)
    }

    @Test("Numbers have bounds")
    func bounds() async {
        let faults: [(inout SessionBenchPlan) -> Void] = [
            { $0.rounds = 2 }, { $0.rounds = 1_001 }, { $0.notices = 9 }, { $0.accounts = 0 },
            { $0.nodes = 101 },
            { $0.stored = 0 }
        ]
        for fault in faults {
            await #expect(throws: BenchError(.badPlan)) {
                try await SessionBench(plan(fault), world: .live).run()
            }
        }
    }

    @Test("A swarm whose process ends before it has told anything is no measurement")
    func deadSwarm() async {
        let plan = plan { plan in
            plan.log = "/dev/null"
            plan.network = { plan in
                try ChildProcess("/bin/false", [], environment: [:], log: plan.log)
            }
        }
        await #expect(throws: BenchError(.processFault)) {
            var report = BenchReport()
            _ = try await SwarmBench(plan, world: .live).run(&report)
        }
    }

    @Test("What is made of a stored subscription is of another account each time, and can be read")
    func strangers() throws {
        let stored = try StoredSubscriptions(2, world: .live)
        #expect(stored.count == 2 && !(stored.body(0) == stored.body(1)))
        #expect(stored.strangersBody(7) == stored.strangersBody(7))
        #expect(!(stored.strangersBody(7) == stored.strangersBody(8)))
        #expect(stored.strangersBody(7).count == stored.body(0).count)
    }
}
