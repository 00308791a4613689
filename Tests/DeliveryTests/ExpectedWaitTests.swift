import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("How long a push that comes now would wait")
struct ExpectedWaitTests {
    @Test(
        "After a pause of any length a crowd is told a wait, and the longest at most",
        arguments: [0, 30, 300, 9_000])
    func pause(ticks: Int) {
        let limits = DeliveryLimits()
        var lane = LaneState(limits: limits)
        let (now, instant) = (UnixTime(seconds: 1_800_000_000), ContinuousClock.now)
        lane.answersInTick = 200
        for _ in 0...ticks { _ = lane.tick(now: now, instant: instant, seconds: 0.1, isLeased: true) }
        lane.correct(parked: 2_000)
        // 200 answers in a tenth of a second are 2,000 a second, of which one tick takes up a fifth.
        #expect(lane.expectedWait() == (ticks == 0 ? .seconds(5) : lane.longestWait))
        lane.correct(parked: 1_000)
        #expect(lane.expectedWait() == .zero)
    }
}
