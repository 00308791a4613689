import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("How long a push that comes now would wait")
struct ExpectedWaitTests {
    private let now = UnixTime(seconds: 1_800_000_000)
    private let instant = ContinuousClock.now

    /// A lane that gave 200 answers in a tenth of a second: 2,000 a second.
    private func quick() -> LaneState {
        var lane = LaneState(limits: DeliveryLimits())
        lane.answersInTick = 200
        tick(&lane, 1)
        return lane
    }

    private func tick(_ lane: inout LaneState, _ ticks: Int) {
        for _ in 0..<ticks { _ = lane.tick(now: now, instant: instant, seconds: 0.1, isLeased: true) }
    }

    @Test(
        "A pause of any length, and few pushes, say nothing about how fast a lane is",
        arguments: [0, 30, 9_000])
    func pause(ticks: Int) {
        var lane = quick()
        for _ in 0..<ticks {
            lane.answersInTick = 1
            tick(&lane, 1)
        }
        lane.correct(parked: 2_000)
        #expect(lane.expectedWait() == .seconds(1))
        lane.correct(parked: 1_000)
        #expect(lane.expectedWait() == .zero)
    }

    @Test(
        "A lane that is behind and gets few answers is slow, and one that gets none has the longest wait at most"
    )
    func behind() throws {
        var lane = quick()
        lane.correct(parked: 2_000)
        for _ in 0..<100 {
            lane.answersInTick = 20
            tick(&lane, 1)
        }
        let wait = try #require(lane.expectedWait())
        #expect(wait > .milliseconds(9_990) && wait <= .seconds(10), "200 answers a second")
        tick(&lane, 9_000)
        #expect(lane.expectedWait() == lane.longestWait)
    }

    @Test("Of a lane that has never had an answer nobody can say")
    func unknown() {
        var lane = LaneState(limits: DeliveryLimits())
        lane.correct(parked: 2_000)
        tick(&lane, 3)
        #expect(lane.expectedWait() == nil)
    }
}
