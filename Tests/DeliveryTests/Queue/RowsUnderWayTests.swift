import AtRest
import PushModel
import PushTesting
import Testing

@testable import Delivery

/// What the store gives out while its push is under way (decision 0108).
@Suite("Pushes under way whose rows come back", .timeLimit(.minutes(30)))
struct RowsUnderWayTests {
    /// A lane that has a push under way, whose row the store gives out again.
    private static func stage() -> LaneStage {
        var stage = LaneStage()
        stage.lane.begin(term: 1, isProven: true)
        return stage
    }

    private func owed(_ number: Int, _ pushClass: PushClass = .normal) -> OwedPush {
        samplePush(number, pushClass: pushClass, custodyEnds: UnixTime(seconds: 1_800_000_800))
    }

    @Test(
        "Whatever the request is answered is said of the row in its new name",
        arguments: [(Answer.accepted, true), (.rejected, true), (.busy(), false), (.silence, false)])
    func answers(_ answer: Answer, _ isEnd: Bool) throws {
        var stage = Self.stage()
        let sent = try stage.send(owed(1))
        stage.giveOut(owed(1).renamed(epoch: 4, attempt: 2))
        let heard = stage.heard(sent, answer)
        let item = try stage.end(heard)
        #expect(item.settlement.push.epoch == 4)
        if isEnd { return #expect(item.settlement.step == .settle) }
        guard case .retry(_, let stored, _, _) = item.settlement.step else {
            Issue.record("\(item.settlement.step)")
            return
        }
        // Another process has tried it twice.
        #expect(PushModel.Attempts(stored: stored).made == 3)
        #expect(PushModel.Attempts(stored: stored).unknown == (answer.fate == .unknown ? 1 : 0))
        guard let again = item.rest.again?.entry else { return }
        #expect(again.push.epoch == 4 && again.term == 2 && !again.isFirst)
    }

    @Test("A call of unknown fate is over in its new name too")
    func call() throws {
        var stage = Self.stage()
        let sent = try stage.send(owed(1, .urgent))
        stage.giveOut(owed(1, .urgent).renamed(epoch: 4))
        let heard = stage.heard(sent, .silence)
        let item = try stage.end(heard)
        #expect(item.settlement.push.epoch == 4 && item.settlement.step == .settle)
    }

    @Test("What is not under way, or no more, is nobody's to keep")
    func others() throws {
        var stage = Self.stage()
        let (first, second) = (try stage.send(owed(1)), try stage.send(owed(2)))
        try stage.accept(first)
        // It takes the first one's place.
        let third = try stage.send(owed(3))
        let given = (1...4).map { owed($0).renamed(epoch: 2) }
        var left = stage.lane.rowsUnderWay.keep(given, term: 2).map(\.id)
        #expect(left == [given[0].id, given[3].id])
        for sent in [second, third] { try stage.accept(sent) }
        left = stage.lane.rowsUnderWay.keep(given, term: 2).map(\.id)
        #expect(left == given.map(\.id))
    }

    @Test("The newest of several names counts, in whichever order they come", arguments: [[3, 5], [5, 3]])
    func names(_ epochs: [Int64]) throws {
        var stage = Self.stage()
        let sent = try stage.send(owed(1))
        for epoch in epochs {
            stage.giveOut(owed(1).renamed(epoch: epoch))
        }
        let heard = stage.heard(sent, .accepted)
        let item = try stage.end(heard)
        #expect(item.settlement.push.epoch == 5)
    }

    @Test("A push that goes on in the pair's other lane does so in its new name, as its row stands")
    func goesOn() throws {
        var stage = Self.stage()
        let sent = try stage.send(owed(1))
        stage.giveOut(owed(1).renamed(epoch: 2))
        let heard = stage.heard(sent, .badDeviceToken)
        #expect(heard.entry.push.epoch == 2 && heard.entry.term == 2)
        let actions = stage.lane.left(heard)
        #expect(actions.settle.isEmpty)
    }

    @Test("One whose row gets its name on the way there goes back to the store in that name")
    func goesOnAtOnce() throws {
        var stage = Self.stage()
        let sent = try stage.send(owed(1))
        let heard = stage.heard(sent, .badDeviceToken)
        stage.giveOut(owed(1).renamed(epoch: 2))
        let steps = stage.lane.left(heard).settle.map(\.settlement)
        #expect(steps.map(\.push.epoch) == [2] && steps.allSatisfy { $0.step == .park })
        stage.giveOut(owed(1).renamed(epoch: 3), isUnderWay: false)
    }

    /// Where the push is under way when its row comes back.
    enum Place: CaseIterable { case here, inLaneThatLeft, inOtherLane }

    @Test(
        "A push that comes back to the process that is sending it is not sent beside itself",
        arguments: Place.allCases)
    func comesBack(_ place: Place) async throws {
        let gate = AwaitedCount()
        let slow = { @Sendable (_: OwedPush) async -> Answer in
            await gate.wait(for: 1)
            return .accepted
        }
        let isPair = place == .inOtherLane
        let mine = ScriptedProvider(isPair ? Names.sandbox : Names.fcm, slots: 2, answer: slow)
        let first = ScriptedProvider(Names.apns, slots: 2) { _ in .badDeviceToken }
        let theirs = [Names.fcm, Names.apns, Names.sandbox].map {
            ScriptedProvider($0, slots: 0, answer: slow)
        }
        let heir = ScriptedProvider(Names.fcm) { _ in .accepted }
        let credential = Credential()
        let plans = [
            DeliveryService.Setup.of([(mine, credential), (first, credential)], environment: .learn),
            .of(theirs.map { ($0, credential) }, environment: .learn)
        ]
        try await Fleet.run(Depot(), plans) { rigs in
            rigs[0].outbox.set { $0.renew = .unavailable }
            try await rigs[0].owe([push(1, bundle: isPair ? "org.acme" : nil)])
            await mine.waitForSent(1)
            // Its lease runs out; the other takes the row over, and dies.
            await rigs[0].pass(until: rigs[1].outbox.claimed, reaches: 1)
            rigs[1].outbox.cut()
            if place == .inLaneThatLeft {
                rigs[0].service.adopt(
                    .of([(heir, credential), (first, credential)], environment: .learn, stamp: 1))
            }
            rigs[0].outbox.set { $0.renew = nil }
            await rigs[0].pass(until: rigs[0].outbox.claimed, reaches: 1)
            await rigs[0].pass(.seconds(3))
            #expect(mine.sent.count == 1 && heir.sent.isEmpty && first.sent.count == (isPair ? 1 : 0))
            gate.add()
            await rigs[0].pass(until: rigs[0].outbox.ended, reaches: 1)
            try await rigs[0].expectRows(0)
            #expect(mine.sent.count == 1 && heir.sent.isEmpty && first.sent.count == (isPair ? 1 : 0))
        }
    }
}

extension OwedPush {
    /// As a claim brings it.
    fileprivate func renamed(epoch: Int64, attempt: Int = 0) -> OwedPush {
        with(attempt: attempt, epoch: epoch)
    }
}

extension LaneStage {
    fileprivate mutating func send(_ push: OwedPush) throws -> LaneQueue.Entry {
        admit([LaneQueue.Entry(push: push, isFirst: true, environmentKnown: true, term: 1)])
        let sent = lane.next(at: moment, term: 1).entry
        return try #require(sent)
    }

    fileprivate mutating func heard(_ sent: LaneQueue.Entry, _ answer: Answer) -> LaneState.Heard {
        lane.heard(sent, answer, mayGoOn: true, at: moment, random: 0).heard
    }

    /// The store gives a push out.
    fileprivate mutating func giveOut(_ push: OwedPush, isUnderWay: Bool = true) {
        let others = lane.rowsUnderWay.keep([push], term: 2)
        #expect(others.isEmpty == isUnderWay)
    }

    fileprivate mutating func accept(_ sent: LaneQueue.Entry) throws {
        let heard = heard(sent, .accepted)
        _ = try end(heard)
    }

    /// The step that follows.
    fileprivate mutating func end(_ heard: LaneState.Heard) throws -> Settler.Item {
        let (_, actions) = lane.answered(heard, outcome: heard.answer.outcome, at: moment, limits: limits)
        #expect(actions.settle.count == 1)
        return try #require(actions.settle.first)
    }
}
