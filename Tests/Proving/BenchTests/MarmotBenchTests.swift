import PushModel
import Testing

@testable import Bench

@Suite("What Marmot's arithmetic costs", .timeLimit(.minutes(30))) struct MarmotBenchTests {
    @Test("every contender does its work and has its row")
    func rows() async throws {
        let report = try await MarmotBench.run(rounds: 3, world: .live).report
        #expect(report.count("rounds") == 3)
        for name in ["bare_ecdh", "open_seed", "open_mip05_280"] {
            #expect((report.count("\(name)_per_second") ?? 0) > 0, "\(name)")
        }
        // A difference of two spans: three rounds on a busy machine may give any number.
        #expect(report.count("relay_push_v1_19_step_9_tokens_per_second") != nil)
        for name in ["open_push_v1_to_bare", "unwrap_19_to_primitives", "unwrap_1_chacha20_microseconds"] {
            #expect(report.rows.contains { $0.name == name }, "\(name)")
        }
    }

    @Test("rounds have bounds")
    func bounds() async {
        for rounds in [2, 1_001] {
            await #expect(throws: BenchError(.badPlan)) {
                try await MarmotBench.run(rounds: rounds, world: .live)
            }
        }
    }
}
