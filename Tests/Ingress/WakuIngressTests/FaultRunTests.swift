import Testing
import WakuIngress

@Suite("Faults in a row")
struct FaultRunTests {
    private static let start = ContinuousClock.now
    private static func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    private static func told(_ seconds: [Int], at look: Int) -> Int {
        var run = FaultRun(FaultRunLimits())
        for second in seconds { run.failed(at: at(second)) }
        return run.told(at: at(look))
    }

    @Test("Three over a minute are told, fewer or sooner are not")
    func enough() {
        #expect(Self.told([], at: 0) == 0)
        #expect(Self.told([0, 60], at: 60) == 0)
        #expect(Self.told([0, 1, 59], at: 600) == 0)
        #expect(Self.told([0, 1, 60], at: 60) == 3)
        #expect(Self.told([0, 1, 60, 61], at: 3_660) == 4)
    }

    @Test("A success ends them, and so does an hour without any; then they are counted anew")
    func ends() {
        #expect(Self.told([0, 1, 60], at: 3_660) == 0)
        #expect(Self.told([0, 1, 60, 3_660], at: 3_660) == 0)
        var run = FaultRun(FaultRunLimits())
        for second in [0, 30, 60] { run.failed(at: Self.at(second)) }
        #expect(run.told(at: Self.at(60)) == 3)
        run.succeeded()
        #expect(run.told(at: Self.at(60)) == 0)
        for second in [61, 62] { run.failed(at: Self.at(second)) }
        run.failed(at: Self.at(121))
        #expect(run.told(at: Self.at(121)) == 3)
    }

    @Test("Counting has an end")
    func bounded() {
        var limits = FaultRunLimits()
        limits.most = 5
        var run = FaultRun(limits)
        for second in 0..<100 { run.failed(at: Self.at(second)) }
        #expect(run.told(at: Self.at(100)) == 5)
    }
}
