import AtRest
import PushModel
import PushTesting
import Testing

@testable import Delivery

/// A lane that a test tells events.
private struct Stage {
    var lane: LaneState
    let limits: DeliveryLimits
    var now = UnixTime(seconds: 1_800_000_000)
    var instant = ContinuousClock.now

    init(isProven: Bool = true) {
        var limits = DeliveryLimits()
        limits.breakerAddresses = 5
        self.limits = limits
        lane = LaneState(limits: limits, isProven: isProven)
    }

    var moment: LaneMoment {
        LaneMoment(now: now, instant: instant, clock: .init(wall: now, judged: now, isDoubted: false))
    }

    mutating func admit(_ pushes: [OwedPush]) {
        _ = lane.admit(pushes.map { entry($0) }, now: now, instant: instant)
    }

    /// How many leave now.
    mutating func leave() -> Int {
        var count = 0
        while lane.next(at: moment, term: 0).entry != nil { count += 1 }
        return count
    }

    mutating func pass(_ span: Duration) {
        now = now + span
        instant += span
        _ = lane.tick(at: moment, seconds: 1, isLeased: true)
    }

    /// Sends the next push, and gives its request up.
    mutating func giveUp() throws -> LaneQueue.Entry {
        let next = lane.next(at: moment, term: 0).entry
        let sent = try #require(next)
        let (heard, _) = lane.heard(sent, .silence, mayGoOn: false, at: moment, random: .max)
        _ = lane.answered(heard, outcome: Answer.silence.outcome, at: moment, limits: limits)
        return sent
    }

    mutating func hearLate(
        _ answer: Answer, of entry: LaneQueue.Entry, goesOn: Bool = false
    ) -> LaneState.Actions {
        lane.heardLate(
            entry, answer, outcome: goesOn ? nil : answer.outcome, at: moment, random: 0, limits: limits
        ).actions
    }
}

/// What a lane learns by an answer that comes late, and what it does not (decision 0077).
@Suite("A lane's books of late answers", .timeLimit(.minutes(30)))
struct LateBooksTests {
    private func owed(_ number: Int) -> OwedPush {
        samplePush(number, origin: UInt64(number % 5), custodyEnds: UnixTime(seconds: 1_800_000_800))
    }

    @Test("What was given up is under way no more: its late answer makes no room at its phone")
    func phone() throws {
        var stage = Stage()
        stage.admit((1...100).map { owed($0).addressed(to: "phone") })
        let late = try stage.giveUp()
        #expect(stage.leave() == stage.limits.addressWindow)
        _ = stage.hearLate(.busy(), of: late)
        stage.pass(.seconds(1))
        #expect(stage.leave() == 0)
    }

    @Test("Nor at the authority that its push names, but for the one that every word opens there")
    func authority() throws {
        var stage = Stage()
        let pigeons = (1...100).map { number in
            owed(number).carrying(
                ProviderMessage(
                    PigeonMessage(
                        loft: Secret("coast/\(number)".utf8), note: Secret("n".utf8),
                        coast: "coast.example:443")))
        }
        stage.admit(pigeons)
        let late = try stage.giveUp()
        // A silence halves what may be under way.
        #expect(stage.leave() == stage.limits.destinationWindow / 2)
        _ = stage.hearLate(.busy(), of: late)
        stage.pass(.seconds(1))
        #expect(stage.leave() == 1)
    }

    @Test("A late word about a token that may be the other environment's blames no target, and others do")
    func elsewhere() throws {
        var stage = Stage()
        stage.admit((1...20).map(owed))
        for isElsewhere in [true, false] {
            var changes: [Breaker.Change] = []
            for _ in 0..<5 {
                let late = try stage.giveUp()
                let actions = stage.hearLate(.badDeviceToken, of: late, goesOn: isElsewhere)
                changes.append(actions.breaker)
                #expect(actions.settle.isEmpty == isElsewhere)
            }
            #expect(changes.last == (isElsewhere ? Breaker.Change.none : .halted(.targets)))
            #expect(changes.dropLast().allSatisfy { $0 == .none })
        }
    }

    @Test("What the store gave out under another name before its end came is ended under that name")
    func claimed() throws {
        var stage = Stage()
        stage.admit([owed(1)])
        let late = try stage.giveUp()
        let told = stage.hearLate(.accepted, of: late).settle
        #expect(told.map(\.settlement.push.epoch) == [1])
        // The claim was on its way.
        let actions = stage.lane.admit(
            [entry(late.push.givenOut())], now: stage.now, instant: stage.instant)
        #expect(actions.settle.map(\.settlement.push.epoch) == [2])
        #expect(actions.settle.allSatisfy { $0.settlement.step == .settle })
        #expect(stage.leave() == 0)
    }

    @Test("So is one whose repeat was answered at the same moment", arguments: [true, false])
    func atOnce(_ isAccepted: Bool) throws {
        var stage = Stage()
        stage.admit([owed(1)])
        let late = try stage.giveUp()
        stage.admit([late.push.givenOut()])
        let sent = stage.lane.next(at: stage.moment, term: 0).entry
        let again = try #require(sent)
        let answer = isAccepted ? Answer.accepted : .busy()
        let (heard, _) = stage.lane.heard(again, answer, mayGoOn: false, at: stage.moment, random: 0)
        _ = stage.hearLate(.accepted, of: late)
        let (next, actions) = stage.lane.answered(
            heard, outcome: answer.outcome, at: stage.moment, limits: stage.limits)
        #expect(next == .ended)
        #expect(actions.settle.map(\.settlement.push.epoch) == [2])
        #expect(actions.settle.allSatisfy { $0.settlement.step == .settle })
    }

    @Test("A registration that is spared when the word comes late is told like any other")
    func spared() throws {
        var stage = Stage(isProven: false)
        stage.admit([owed(1)])
        let late = try stage.giveUp()
        let actions = stage.hearLate(.badDeviceToken, of: late)
        #expect(actions.spared == .unproven)
        #expect(actions.settle.count == 1 && actions.settle.first?.feedback.isEmpty == true)
    }

    @Test("A late word about a call proves the configuration, and the store hears of the next acceptance")
    func provenByCall() async throws {
        let word = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { push in
            guard push.pushClass == .urgent else { return .accepted }
            return .silence {
                await word.wait(for: 1)
                return .accepted
            }
        }
        var setup = DeliveryService.Setup.of(provider)
        setup.lanes = [
            DeliveryService.LaneSpec(
                provider, credential: Credential(), stamp: 0, identity: Secret("one".utf8))
        ]
        try await Rig.run(Depot(), setup) { rig in
            try await rig.owe([push(1, .urgent)])
            await rig.outbox.ended.wait(for: 1)
            #expect(try rig.lane().reason == .deadlineExceeded)
            word.add()
            try await asked(for: "the late word") { try rig.lane().reason == nil }
            try await rig.owe([push(2)])
            await rig.outbox.ended.wait(for: 2)
            let proof = try await rig.store.find([LaneProof.key(Names.fcm)]).first ?? nil
            #expect(proof != nil)
            #expect(provider.sent.count == 2)
        }
    }
}

extension OwedPush {
    /// The same, of unknown fate once, as a claim brings it.
    fileprivate func givenOut() -> OwedPush {
        OwedPush(
            id: id, row: row, lane: lane, pushClass: pushClass, origin: origin, record: record,
            touchedAt: touchedAt, notBefore: notBefore, custodyEnds: custodyEnds,
            attempt: attempts.andOneUnknown().stored, epoch: epoch + 1, mark: mark, instance: instance,
            message: message)
    }

    /// The same, with another message.
    func carrying(_ message: ProviderMessage) -> OwedPush {
        OwedPush(
            id: id, row: row, lane: lane, pushClass: pushClass, origin: origin, record: record,
            touchedAt: touchedAt, notBefore: notBefore, custodyEnds: custodyEnds,
            attempt: attempts.stored, epoch: epoch, mark: mark, instance: instance, message: message)
    }

    /// The same, to another address.
    func addressed(to address: String) -> OwedPush {
        carrying(
            .fcm(FCMMessage(address: Secret(address.utf8), priority: .high, data: Secret("{}".utf8))))
    }
}
