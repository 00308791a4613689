import PushModel
import Testing

@testable import Bench

@Suite("What Status costs", .timeLimit(.minutes(30))) struct StatusBenchTests {
    @Test("Each part does its work and has its row")
    func rows() async throws {
        let report = try await StatusBench(rounds: 3, world: .live).run().report
        for name in ["notifications_1_bytes_0", "notifications_1_bytes_600", "notifications_8_bytes_0"] {
            #expect((report.count("\(name)_requests_per_second") ?? 0) > 0, "\(name)")
            for primitive in RequestParts.primitives {
                #expect(report.rows.contains { $0.name == "\(name)_\(primitive)_microseconds" })
            }
        }
        #expect(report.rows.contains { $0.name == "topic_key_milliseconds" })
        for share in [1_000, 10, 1] {
            #expect(report.rows.contains { $0.name == "poll_one_of_\(share)_nanoseconds_a_message" })
        }
    }

    @Test("Numbers have bounds", arguments: [2, 1_001])
    func bounds(rounds: Int) async {
        await #expect(throws: BenchError(.badPlan)) {
            try await StatusBench(rounds: rounds, world: .live).run()
        }
    }
}
