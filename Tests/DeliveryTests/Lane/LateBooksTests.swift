import AtRest
import PushModel
import PushTesting
import Testing

@testable import Delivery

/// What a lane learns by an answer that comes late, and what it does not (decision 0077).
@Suite("A lane's books of late answers", .timeLimit(.minutes(30)))
struct LateBooksTests {
    private static func stage(isProven: Bool = true) -> LaneStage {
        LaneStage(changing(DeliveryLimits()) { $0.breakerAddresses = 5 }, isProven: isProven)
    }

    private func owed(_ number: Int) -> OwedPush {
        samplePush(number, origin: UInt64(number % 5), custodyEnds: UnixTime(seconds: 1_800_000_800))
    }

    @Test("What was given up is under way no more: its late answer makes no room at its phone")
    func phone() throws {
        var stage = Self.stage()
        stage.admit((1...100).map { owed($0).addressed(to: "phone") })
        let late = try stage.giveUp()
        #expect(stage.leave() == stage.limits.addressWindow)
        _ = stage.hearLate(.busy(), of: late)
        stage.tick(after: .seconds(1))
        #expect(stage.leave() == 0)
    }

    @Test("Nor at the authority that its push names, but for the one that every word opens there")
    func authority() throws {
        var stage = Self.stage()
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
        stage.tick(after: .seconds(1))
        #expect(stage.leave() == 1)
    }

    @Test("A late word about a token that may be the other environment's blames no target, and others do")
    func elsewhere() throws {
        var stage = Self.stage()
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
        var stage = Self.stage()
        stage.admit([owed(1)])
        let late = try stage.giveUp()
        let told = stage.hearLate(.accepted, of: late).settle
        #expect(told.map(\.settlement.push.epoch) == [1])
        // The claim was on its way.
        let actions = stage.admit([entry(late.push.givenOut())])
        #expect(actions.settle.map(\.settlement.push.epoch) == [2])
        #expect(actions.settle.allSatisfy { $0.settlement.step == .settle })
        #expect(stage.leave() == 0)
    }

    @Test("So is one whose repeat was answered at the same moment", arguments: [true, false])
    func atOnce(_ isAccepted: Bool) throws {
        var stage = Self.stage()
        stage.admit([owed(1)])
        let late = try stage.giveUp()
        stage.admit([late.push.givenOut()])
        let again = try stage.sent()
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
        var stage = Self.stage(isProven: false)
        stage.admit([owed(1)])
        let late = try stage.giveUp()
        let actions = stage.hearLate(.badDeviceToken, of: late)
        #expect(actions.spared == .unproven)
        #expect(actions.settle.count == 1 && actions.settle.first?.rest.feedback.isEmpty == true)
    }

    @Test("A late word about a call proves the configuration, and the store hears of the next acceptance")
    func provenByCall() async throws {
        let word = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { push in
            guard push.pushClass == .urgent else { return .accepted }
            return .silence { await Answer.accepted.after(word) }
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

extension LaneStage {
    fileprivate mutating func admit(_ pushes: [OwedPush]) { admit(pushes.map { entry($0) }) }

    /// How many leave now.
    fileprivate mutating func leave() -> Int {
        var count = 0
        while next().entry != nil { count += 1 }
        return count
    }

    fileprivate mutating func tick(after span: Duration) {
        pass(span)
        _ = lane.tick(at: moment, seconds: 1, isLeased: true)
    }

    /// Sends the next push, and gives its request up.
    fileprivate mutating func giveUp() throws -> LaneQueue.Entry {
        let sent = try sent()
        let (heard, _) = lane.heard(sent, .silence, mayGoOn: false, at: moment, random: .max)
        _ = lane.answered(heard, outcome: Answer.silence.outcome, at: moment, limits: limits)
        return sent
    }

    fileprivate mutating func hearLate(
        _ answer: Answer, of entry: LaneQueue.Entry, goesOn: Bool = false
    ) -> LaneState.Actions {
        lane.heardLate(
            entry, answer, outcome: goesOn ? nil : answer.outcome, at: moment, random: 0, limits: limits
        ).actions
    }
}

extension OwedPush {
    /// The same, of unknown fate once, as a claim brings it.
    fileprivate func givenOut() -> OwedPush {
        with(attempt: attempts.andOneUnknown().stored, epoch: epoch + 1)
    }

    /// The same, with another message.
    func carrying(_ message: ProviderMessage) -> OwedPush { with(message: message) }

    /// The same, to another address.
    func addressed(to address: String) -> OwedPush {
        carrying(
            .fcm(FCMMessage(address: Secret(address.utf8), priority: .high, data: Secret("{}".utf8))))
    }
}
