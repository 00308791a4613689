import PushModel
import Testing

@testable import Bench

@Suite("Rounds of measurements", .timeLimit(.minutes(30))) struct RoundsTests {
    @Test("A median is the middle, or lies between the two; of nothing it is no number")
    func median() {
        #expect(Series([3, 1, 2]).median == 2)
        #expect(Series([4, 1, 2, 3]).median == 2.5)
        #expect(Series([]).median.isNaN)
    }

    @Test("A ratio is taken round by round, and its spread is the distance of the outermost rounds")
    func ratio() {
        let ratio = Series([2, 40, 9]) / Series([1, 10, 3])
        #expect(ratio.values == [2, 4, 3] && ratio.median == 3)
        #expect(ratio.spread == 2.0 / 3)
        var report = BenchReport()
        report.add("to_bare", ratio: ratio)
        report.add("opened", perSecond: Series([0.5, 0.25, 0.125]))
        #expect(report.json() == #"{"to_bare":3.000,"to_bare_spread":0.667,"opened_per_second":4}"#)
    }

    @Test("The first round is not counted")
    func warmUp() async throws {
        var round = 0.0
        let rounds = try await Rounds(3) {
            round += 1
            return ["round": round]
        }
        #expect(rounds["round"].values == [2, 3, 4])
        #expect(rounds["none"].values.isEmpty)
    }

    @Test("Contenders take turns, another one first each time, and undo what a turn has left")
    func turns() async throws {
        var done = ""
        let contenders = ["a", "b"].map { name in
            Contender(name, times: 2, undo: { done += "." }) { done += "\(name)\($0)" }
        }
        let rounds = try await Rounds(1, contenders)
        #expect(done == "a0a1.b0b1." + "b0b1.a0a1.")
        #expect(rounds["a"].values.count == 1 && rounds["b"].values.count == 1)
    }

    @Test("A dissection has a row of each primitive, and of their sum")
    func dissection() async throws {
        var report = BenchReport()
        let found = try await Dissection(
            name: "way", whole: Contender("whole") { _ in },
            primitives: [Contender("hash") { _ in }, Contender("seal", times: nil) { _ in }]
        )
        .measure(rounds: 3, digits: 1, &report)
        #expect(found.whole.values.count == 3 && found.primitives.values.count == 3)
        #expect(
            report.rows.map(\.name) == [
                "way_microseconds", "way_primitives_microseconds", "way_hash_microseconds",
                "way_seal_microseconds"
            ])
    }

    @Test("Measurements beside primitives tell how many rounds there were")
    func rounds() async throws {
        let told = try await Trivial.run(rounds: 3, world: .live)
        #expect(told.report.count("rounds") == 3 && told.hasPassed)
        for rounds in [2, 1_001] {
            await #expect(throws: BenchError(.badPlan)) {
                try await Trivial.run(rounds: rounds, world: .live)
            }
        }
    }

    private enum Trivial: BesidePrimitives {
        static let (name, abstract, discussion) = ("trivial", "", "")
        static let rounds = (usual: 3, span: "")
        static func measure(_: Int, _: World, _: inout BenchReport) async throws -> Bool { true }
    }
}
