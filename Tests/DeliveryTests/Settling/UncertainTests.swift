import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Answers of the store that are lost, and clocks that are set", .timeLimit(.minutes(30)))
struct UncertainTests {
    @Test("What was accepted without our hearing of it is sent, once", arguments: EngineKind.allCases)
    func lostAccept(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            await rig.oweUnheard([push(1), push(2)])
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.addresses.sorted() == ["t1", "t2"])
            // Its origin asks again, as it was told to.
            try await rig.expect([.accepted, .accepted], of: [push(1), push(2)])
            #expect(provider.sent.count == 2)
            try await rig.expectRows(0)
        }
    }

    @Test("What was claimed without our hearing of it is sent, once")
    func lostClaim() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            rig.outbox.set { $0.lostClaims = 1 }
            try await rig.owe((1...12).map { push($0) })
            await rig.pass(until: rig.outbox.ended, reaches: 12)
            #expect(Set(provider.addresses).count == 12 && provider.sent.count == 12)
            try await rig.expectRows(0)
        }
    }

    @Test("What was claimed is sent although the store fails at the next question")
    func failsAfterClaim() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            rig.outbox.set { $0.nextDue = .unavailable }
            try await rig.owe((1...6).map { push($0) })
            await rig.outbox.refusals.wait(for: 1)
            rig.outbox.set { $0.nextDue = nil }
            await rig.pass(until: rig.outbox.ended, reaches: 6)
            #expect(provider.sent.count == 6)
        }
    }

    @Test("A push that is under way meanwhile is waited for, and not sent again")
    func underWay() async throws {
        let gate = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 1) { push in
            if push.address == "t1" { await gate.wait(for: 1) }
            return .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1)])
            await provider.waitForSent(1)
            await rig.oweUnheard([push(2)])
            await rig.pass(.seconds(1))
            #expect(provider.addresses == ["t1"])
            // What comes now is owed, and waits in the store.
            try await rig.owe([push(3)])
            gate.add()
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(provider.addresses.sorted() == ["t1", "t2", "t3"])
        }
    }

    @Test("Volatile pushes that are under way meanwhile keep nothing back")
    func besideVolatile() async throws {
        let gate = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            if push.custody == .volatile { await gate.wait(for: 1) }
            return .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.admitVolatile([1])
            await provider.waitForSent(1)
            await rig.oweUnheard([push(2)])
            try await rig.owe([push(3)])
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.addresses.sorted() == ["t1", "t2", "t3"])
            #expect(rig.service.volatileOwed == 1)
            gate.add()
            await rig.passUntilNothingOwed()
        }
    }

    @Test("A lane that a reload makes meanwhile keeps nothing in memory either: nothing is sent twice")
    func besideReload() async throws {
        let answer = AwaitedCount()
        let production = ScriptedProvider(Names.apns) { _ in await Answer.badDeviceToken.after(answer) }
        let sandbox = ScriptedProvider(Names.sandbox, slots: 0) { _ in .accepted }
        let before = ScriptedProvider(Names.sandbox, slots: 0) { _ in .accepted }
        let credential = Credential()
        let plan = DeliveryService.Setup.of(
            [(production, credential), (before, credential)], environment: .learn)
        try await Rig.run(Depot(), plan) { rig in
            try await rig.owe([push(1, bundle: "org.acme")])
            await production.waitForSent(1)
            await rig.oweUnheard([push(2, bundle: "org.acme")])
            // Everything is to be given back; one push is under way and waited for.
            await rig.clock.sleepers(atLeast: 4)
            let idle = ScriptedProvider(Names.apns, slots: 0) { _ in .accepted }
            rig.service.adopt(
                .of([(idle, credential), (sandbox, credential)], environment: .learn, stamp: 1))
            // It goes on in the new lane of the sandbox, while all rows are being taken back; then lanes ask
            // for theirs.
            let claims = rig.outbox.claims.count
            answer.add()
            await rig.pass(until: rig.outbox.claims, reaches: claims + 1)
            await rig.pass(.seconds(2))
            idle.grant(2)
            sandbox.grant(2)
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            await rig.pass(.seconds(2))
            #expect(idle.addresses + sandbox.addresses == ["t2", "t1"])
            try await rig.expectRows(0)
        }
    }

    @Test("A store that is out in the midst of it is asked again")
    func outMeanwhile() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.outbox.set {
                $0.lostAccepts = 1
                $0.claim = .unavailable
            }
            await #expect(throws: (any Error).self) { try await rig.owe([push(1)]) }
            await rig.outbox.refusals.wait(for: 1)
            #expect(provider.sent.isEmpty)
            rig.outbox.set { $0.claim = nil }
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(provider.addresses == ["t1"])
        }
    }

    @Test("An answer that comes when another has taken the push over does not send it again")
    func lateAnswer() async throws {
        let depot = Depot()
        let answers = AwaitedCount()
        let mine = ScriptedProvider(Names.fcm, slots: 4) { push in
            guard push.address == "t1" else { return .accepted }
            await answers.wait(for: 1)
            return .busy()
        }
        let theirs = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(mine), own: ManualClock()) { rig in
            try await rig.owe([push(1)])
            await mine.waitForSent(1)
            depot.clock.advance(by: .seconds(30))
            try await Rig.run(depot, .of(theirs)) { other in
                await other.pass(until: other.outbox.ended, reaches: 1)
            }
            // This process was suspended, and renews; only then the answer comes: try again.
            await rig.pass(.seconds(30), step: .seconds(30))
            await rig.pass(.seconds(6), step: .seconds(1))
            try await rig.owe([push(2)])
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            answers.add()
            await rig.outbox.foreign.wait(for: 1)
            await rig.pass(.seconds(5))
            #expect(mine.addresses == ["t1", "t2"])
        }
    }

    @Test(
        "A clock that is set back does not put off what waits for a retry",
        arguments: [Duration.seconds(2), .seconds(60)])
    func setBack(_ wait: Duration) async throws {
        let depot = Depot()
        let first = Once()
        let provider = ScriptedProvider(Names.fcm) { _ in first.take() ? .busy(wait) : .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.owe([push(1)])
            await provider.waitForSent(1)
            // Two seconds stay in memory, a minute goes to the store.
            await (wait < .seconds(5) ? rig.outbox.retried : rig.outbox.parked).wait(for: 1)
            depot.clock.skewWall(by: .seconds(-7_200))
            await rig.pass(.seconds(70), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(provider.sent.count == 2)
        }
    }
}
