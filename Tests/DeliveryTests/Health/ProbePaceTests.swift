import PushModel
import PushTesting
import Testing

@testable import Delivery

/// When the probes of a halted lane leave, by what the ones before were answered (decision 0048).
@Suite("The pace of probes")
struct ProbePaceTests {
    /// A lane whose credential was refused for so long that a minute passes between its probes; more pushes
    /// wait in it.
    private func refused(_ limits: DeliveryLimits = DeliveryLimits(), origin: UInt64? = nil) throws
        -> LaneStage
    {
        var stage = LaneStage(limits)
        stage.admit(1...3, origin: origin)
        var seconds: [Int] = []
        while seconds.last != 60, seconds.count < 20 {
            let next = try stage.probe()
            stage.answer(.badCredential, next.push)
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
        let probe = try stage.probe()
        #expect(probe.seconds == 60)
        if goesOn { stage.goOn(answer, probe.push) } else { stage.answer(answer, probe.push) }
        let second = try stage.probe()
        #expect(second.seconds == 1)
        // What is refused again is asked ever more seldom, as from the beginning.
        stage.answer(.badCredential, second.push)
        let third = try stage.probe()
        #expect(third.seconds == 2)
        stage.answer(.accepted, third.push)
        #expect(!stage.lane.snapshot(of: sampleLane, []).isHalted)
    }

    @Test("One that the service has not looked at does not", arguments: [Answer.notReached, .silence])
    func noWord(_ answer: Answer) throws {
        var stage = try refused()
        stage.answer(answer, try stage.probe().push)
        let second = try stage.probe()
        #expect(second.seconds == 60)
    }

    @Test("Nor does one that blames a target, where so many do that an open lane would halt")
    func manyTargets() throws {
        var stage = try refused(changing(DeliveryLimits()) { $0.breakerAddresses = 5 })
        var seconds: [Int] = []
        for _ in 0..<12 {
            let next = try stage.probe()
            stage.answer(.badDeviceToken, next.push)
            seconds.append(next.seconds)
        }
        // Each of them has cost a push.
        #expect(seconds == [60, 1, 1, 1, 1, 2, 4, 8, 16, 32, 60, 60])
    }

    @Test("Who comes to a lane of which they were the only origin's does not wait for such probes")
    func another() throws {
        var stage = try refused(changing(DeliveryLimits()) { $0.breakerAddresses = 5 }, origin: 7)
        var seconds: [Int] = []
        for _ in 0..<11 {
            let next = try stage.probe()
            stage.answer(.badDeviceToken, next.push)
            seconds.append(next.seconds)
        }
        #expect(seconds == [60, 1, 1, 1, 1, 2, 4, 8, 16, 32, 60])
        stage.admit(100...100, origin: 8)
        let next = try stage.probe()
        #expect(next.seconds == 1)
    }

    @Test("What is refused here takes no probe from a lane that is halted for its targets either")
    func refusedHere() throws {
        var stage = LaneStage(changing(DeliveryLimits()) { $0.breakerAddresses = 5 })
        stage.admit(1...60)
        for _ in 0..<5 { stage.answer(.badDeviceToken, try stage.probe().push) }
        #expect(stage.lane.snapshot(of: sampleLane, []).haltedFor == .targets)
        for expected in [1, 2, 4] {
            let next = try stage.probe()
            #expect(next.seconds == expected)
            stage.answer(.badDeviceToken, next.push)
        }
        let here = try stage.probe()
        #expect(here.seconds == 8)
        stage.answer(.badTokenHere, here.push)
        let next = try stage.probe()
        #expect(next.seconds == 1)
        // It gives its turn to another, and does not make probes frequent: each of them costs a push.
        stage.answer(.badDeviceToken, next.push)
        #expect(try stage.probe().seconds == 16)
    }

    @Test("What our own store kept from its end brings no probe sooner")
    func ownStore() throws {
        var stage = try refused()
        stage.answer(.notKept, try stage.probe().push)
        let second = try stage.probe()
        #expect(second.seconds == 60)
    }
}

extension LaneStage {
    /// - Parameter origin: `nil`: of three.
    fileprivate mutating func admit(_ numbers: ClosedRange<Int>, origin: UInt64? = nil) {
        let entries = numbers.map { number in
            entry(
                samplePush(
                    number, origin: origin ?? UInt64(number % 3 + 1),
                    custodyEnds: UnixTime(seconds: 1_800_086_400)))
        }
        admit(entries)
    }

    /// The next push to leave, and how many seconds it was waited for: a hundred at most.
    fileprivate mutating func probe() throws -> (push: LaneQueue.Entry, seconds: Int) {
        var seconds = 0
        var found = next().entry
        while found == nil, seconds < 100 {
            pass(.seconds(1))
            seconds += 1
            found = next().entry
        }
        return (try #require(found), seconds)
    }

    /// The push is answered, and goes on in another lane.
    fileprivate mutating func goOn(_ answer: Answer, _ sent: LaneQueue.Entry) {
        let heard = lane.heard(sent, answer, mayGoOn: true, at: moment, random: 0).heard
        _ = lane.left(heard)
    }
}
