import PushModel
import Testing

@testable import Delivery

/// A lane that a test tells events, at a time that passes when the test says so.
struct LaneStage {
    var lane: LaneState
    var now = UnixTime(seconds: 1_800_000_000)
    var instant = ContinuousClock.now
    let limits: DeliveryLimits

    init(_ limits: DeliveryLimits = DeliveryLimits(), isProven: Bool = true) {
        self.limits = limits
        lane = LaneState(limits: limits, isProven: isProven)
    }

    var moment: LaneMoment {
        LaneMoment(now: now, instant: instant, clock: .init(wall: now, judged: now, isDoubted: false))
    }

    mutating func pass(_ span: Duration) {
        now = now + span
        instant += span
    }

    @discardableResult
    mutating func admit(_ entries: [LaneQueue.Entry]) -> LaneState.Actions {
        lane.admit(entries, now: now, instant: instant)
    }

    mutating func next(isLeased: Bool = true) -> (entry: LaneQueue.Entry?, actions: LaneState.Actions) {
        lane.next(at: moment, term: isLeased ? 0 : nil)
    }

    /// What leaves now.
    mutating func sent() throws -> LaneQueue.Entry {
        let entry = next().entry
        return try #require(entry)
    }

    /// A push that does not go on is answered, and the store hears of it.
    @discardableResult
    mutating func answer(
        _ answer: Answer, _ entry: LaneQueue.Entry, random: UInt64 = 0
    ) -> LaneState.Actions {
        var (heard, actions) = lane.heard(entry, answer, mayGoOn: false, at: moment, random: random)
        actions.join(lane.answered(heard, outcome: answer.outcome, at: moment, limits: limits).actions)
        lane.land(&actions, at: moment)
        return actions
    }
}

extension LaneState {
    /// The store has heard all that it is told, and says that it is ours.
    mutating func land(_ actions: inout Actions, at moment: LaneMoment) {
        for again in actions.settle.compactMap(\.rest.again) {
            actions.join(comeBack(again.entry, isOurs: true, now: moment.now, instant: moment.instant))
        }
    }
}
