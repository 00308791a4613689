import PushModel
import PushTesting
import Testing

@testable import Delivery

/// When the probes of a halted lane leave, by what the ones before were answered (decision 0048).
@Suite("The pace of probes")
struct ProbePaceTests {
    /// A lane that a test tells events.
    private struct Stage {
        var lane: LaneState
        var now = UnixTime(seconds: 1_800_000_000)
        var instant = ContinuousClock.now
        let limits: DeliveryLimits

        init(_ limits: DeliveryLimits = DeliveryLimits()) {
            self.limits = limits
            lane = LaneState(limits: limits)
        }

        var moment: LaneMoment {
            LaneMoment(now: now, instant: instant, clock: .init(wall: now, judged: now, isDoubted: false))
        }

        /// - Parameter origin: `nil`: of three.
        mutating func admit(_ numbers: ClosedRange<Int>, origin: UInt64? = nil) {
            let entries = numbers.map { number in
                entry(
                    samplePush(
                        number, origin: origin ?? UInt64(number % 3 + 1),
                        custodyEnds: UnixTime(seconds: 1_800_086_400)))
            }
            _ = lane.admit(entries, now: now, instant: instant)
        }

        /// The next push to leave, and how many seconds it was waited for: a hundred at most.
        mutating func next() throws -> (push: LaneQueue.Entry, seconds: Int) {
            var seconds = 0
            var found = lane.next(at: moment, term: 0).entry
            while found == nil, seconds < 100 {
                now = now + .seconds(1)
                instant += .seconds(1)
                seconds += 1
                found = lane.next(at: moment, term: 0).entry
            }
            return (try #require(found), seconds)
        }

        /// - Parameter goesOn: the push goes on in another lane.
        mutating func answer(_ sent: LaneQueue.Entry, _ answer: Answer, goesOn: Bool = false) {
            let heard = lane.heard(sent, answer, mayGoOn: goesOn, at: moment, random: 0).heard
            if goesOn {
                _ = lane.left(heard)
                return
            }
            var actions = lane.answered(
                heard, outcome: answer.outcome, at: moment, limits: limits
            ).actions
            lane.land(&actions, at: moment)
        }
    }

    /// A lane whose credential was refused for so long that a minute passes between its probes; more pushes
    /// wait in it.
    private func refused(_ limits: DeliveryLimits = DeliveryLimits(), origin: UInt64? = nil) throws -> Stage {
        var stage = Stage(limits)
        stage.admit(1...3, origin: origin)
        var seconds: [Int] = []
        while seconds.last != 60, seconds.count < 20 {
            let next = try stage.next()
            stage.answer(next.push, .badCredential)
            seconds.append(next.seconds)
        }
        #expect(seconds.suffix(7) == [1, 2, 4, 8, 16, 32, 60])
        stage.admit(10...60, origin: origin)
        return stage
    }

    @Test(
        "An answer that does not blame the credential, or that nobody was asked for, brings the next soon",
        arguments: [
            (Answer.badDeviceToken, false), (.badDeviceToken, true), (.busy(), false), (.rejected, false),
            (.badTokenHere, false)
        ])
    func anotherWord(_ answer: Answer, _ goesOn: Bool) throws {
        var stage = try refused()
        let probe = try stage.next()
        #expect(probe.seconds == 60)
        stage.answer(probe.push, answer, goesOn: goesOn)
        let second = try stage.next()
        #expect(second.seconds == 1)
        // What is refused again is asked ever more seldom, as from the beginning.
        stage.answer(second.push, .badCredential)
        let third = try stage.next()
        #expect(third.seconds == 2)
        stage.answer(third.push, .accepted)
        #expect(!stage.lane.snapshot(of: sampleLane, []).isHalted)
    }

    @Test("One that the service has not looked at does not", arguments: [Answer.notReached, .silence])
    func noWord(_ answer: Answer) throws {
        var stage = try refused()
        stage.answer(try stage.next().push, answer)
        let second = try stage.next()
        #expect(second.seconds == 60)
    }

    @Test("Nor does one that blames a target, where so many do that an open lane would halt")
    func manyTargets() throws {
        var limits = DeliveryLimits()
        limits.breakerAddresses = 5
        var stage = try refused(limits)
        var seconds: [Int] = []
        for _ in 0..<12 {
            let next = try stage.next()
            stage.answer(next.push, .badDeviceToken)
            seconds.append(next.seconds)
        }
        // Each of them has cost a push.
        #expect(seconds == [60, 1, 1, 1, 1, 2, 4, 8, 16, 32, 60, 60])
    }

    @Test("Who comes to a lane of which they were the only origin's does not wait for such probes")
    func another() throws {
        var limits = DeliveryLimits()
        limits.breakerAddresses = 5
        var stage = try refused(limits, origin: 7)
        var seconds: [Int] = []
        for _ in 0..<11 {
            let next = try stage.next()
            stage.answer(next.push, .badDeviceToken)
            seconds.append(next.seconds)
        }
        #expect(seconds == [60, 1, 1, 1, 1, 2, 4, 8, 16, 32, 60])
        stage.admit(100...100, origin: 8)
        let next = try stage.next()
        #expect(next.seconds == 1)
    }

    @Test("What is refused here takes no probe from a lane that is halted for its targets either")
    func refusedHere() throws {
        var limits = DeliveryLimits()
        limits.breakerAddresses = 5
        var stage = Stage(limits)
        stage.admit(1...60)
        for _ in 0..<5 { stage.answer(try stage.next().push, .badDeviceToken) }
        #expect(stage.lane.snapshot(of: sampleLane, []).haltedFor == .targets)
        for expected in [1, 2, 4] {
            let next = try stage.next()
            #expect(next.seconds == expected)
            stage.answer(next.push, .badDeviceToken)
        }
        let here = try stage.next()
        #expect(here.seconds == 8)
        stage.answer(here.push, .badTokenHere)
        let next = try stage.next()
        #expect(next.seconds == 1)
        // It gives its turn to another, and does not make probes frequent: each of them costs a push.
        stage.answer(next.push, .badDeviceToken)
        #expect(try stage.next().seconds == 16)
    }

    @Test("What our own store kept from its end brings no probe sooner")
    func ownStore() throws {
        var stage = try refused()
        stage.answer(try stage.next().push, .notKept)
        let second = try stage.next()
        #expect(second.seconds == 60)
    }
}
