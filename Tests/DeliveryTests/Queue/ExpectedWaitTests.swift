import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("How long a push that comes now would wait")
struct ExpectedWaitTests {
    private static let longest = Duration.seconds(900)

    /// Answers in a tenth of a second, so many times, of a lane that is behind or not.
    private func tick(_ lane: inout LaneTraffic, answers: Int, _ ticks: Int = 1, isBehind: Bool) {
        for _ in 0..<ticks {
            for _ in 0..<answers {
                lane.sent(.durable)
                lane.answered(.durable)
            }
            lane.tick(seconds: 0.1, isBehind: isBehind)
        }
    }

    /// A lane that gave 2,000 answers a second.
    private func quick() -> LaneTraffic {
        var lane = LaneTraffic()
        tick(&lane, answers: 200, isBehind: false)
        return lane
    }

    @Test(
        "A pause of any length, and few pushes, say nothing about how fast a lane is",
        arguments: [0, 30, 9_000])
    func pause(ticks: Int) {
        var lane = quick()
        tick(&lane, answers: 1, ticks, isBehind: false)
        #expect(lane.wait(behind: 2_000, atMost: Self.longest) == .seconds(1))
        #expect(lane.wait(behind: 1_000, atMost: Self.longest) == .zero)
    }

    @Test(
        "A lane that is behind and gets few answers is slow, and one that gets none has the longest wait at most"
    )
    func behind() throws {
        var lane = quick()
        tick(&lane, answers: 20, 100, isBehind: true)
        let wait = try #require(lane.wait(behind: 2_000, atMost: Self.longest))
        #expect(wait > .milliseconds(9_990) && wait <= .seconds(10), "200 answers a second")
        tick(&lane, answers: 0, 9_000, isBehind: true)
        #expect(lane.wait(behind: 2_000, atMost: Self.longest) == Self.longest)
    }

    @Test("Of a lane that has never had an answer nobody can say")
    func unknown() {
        var lane = LaneState(limits: DeliveryLimits())
        lane.correct(parked: 2_000, hasGained: false)
        let now = UnixTime(seconds: 1_800_000_000)
        let moment = LaneMoment(
            now: now, instant: .now, clock: .init(wall: now, judged: now, isDoubted: false))
        for _ in 0..<3 { _ = lane.tick(at: moment, seconds: 0.1, isLeased: true) }
        #expect(lane.expectedWait() == nil)
        lane.correct(parked: 1_000, hasGained: false)
        #expect(lane.expectedWait() == .zero)
    }
}
