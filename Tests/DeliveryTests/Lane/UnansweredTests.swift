import AtRest
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import Delivery

@Suite("Answers that no service gave", .timeLimit(.minutes(30)))
struct UnansweredTests {
    @Test(
        "However many pushes wait, a service that is not reached is asked a few dozen times a minute",
        arguments: [Answer.notReached, .silence])
    func bounded(_ answer: Answer) async throws {
        let isBack = Mutex(false)
        let provider = ScriptedProvider(Names.fcm, slots: 16) { _ in
            isBack.withLock(\.self) ? .accepted : answer
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...400).map { push($0, origin: "o\($0 % 5)") })
            await provider.waitForSent(20)
            await rig.pass(.seconds(60))
            #expect(provider.sent.count < 200, "\(provider.sent.count) attempts")
            #expect(provider.sent.allSatisfy { $0.attempt <= 10 })
            isBack.withLock { $0 = true }
            await rig.pass(.seconds(7))
            await rig.pass(until: rig.outbox.ended, reaches: 400)
            try await rig.expectRows(0)
        }
    }

    @Test("A minute without a word of the service is told, and its end")
    func told() async throws {
        let isBack = Mutex(false)
        let provider = ScriptedProvider(Names.fcm) { _ in isBack.withLock(\.self) ? .accepted : .notReached }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1)])
            await provider.waitForSent(1)
            await rig.pass(.seconds(59))
            #expect(rig.events.text.isEmpty)
            #expect(try !rig.lane().isUnanswered)
            await rig.pass(.seconds(2))
            #expect(rig.events.text == ["acme/fcm/production unanswered NotReached"])
            #expect(try rig.lane().isUnanswered)
            isBack.withLock { $0 = true }
            await rig.pass(.seconds(7))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            try await asked(for: "word that the lane is answered") { rig.events.text.count >= 2 }
            #expect(rig.events.text.last == "acme/fcm/production answered")
            #expect(try !rig.lane().isUnanswered)
        }
    }

    @Test("What is refused here is no try: fifty such pushes take nobody's turn")
    func refusedHere() {
        var instant = ContinuousClock.now
        var reach = Reach(limits: DeliveryLimits())
        for _ in 0..<100 where !reach.isSilent { _ = reach.note(.notReached, at: instant, random: .max) }
        #expect(reach.isSilent && !reach.mayTry(instant))
        instant += .seconds(60)
        for _ in 0..<50 {
            #expect(reach.mayTry(instant))
            reach.sent(at: instant)
            #expect(!reach.mayTry(instant))
            _ = reach.note(.badTokenHere, at: instant, random: .max)
        }
        #expect(reach.mayTry(instant) && reach.isSilent)
        reach.sent(at: instant)
        _ = reach.note(.accepted, at: instant, random: .max)
        #expect(!reach.isSilent)
    }

    @Test("No connection at all is told as well, though nothing is ever sent")
    func noConnection() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            await rig.pass(.seconds(120), step: .seconds(1))
            try await rig.owe([push(1)])
            await rig.pass(.seconds(59), step: .seconds(1))
            #expect(rig.events.text.isEmpty)
            await rig.pass(.seconds(2), step: .seconds(1))
            #expect(rig.events.text == ["acme/fcm/production unanswered NotReached"])
            #expect(try rig.lane().reason == .notReached)
            provider.grant(1)
            await rig.outbox.ended.wait(for: 1)
        }
    }

    @Test("An hour of refusals is the service's own word, and a halted lane has an alert of its own")
    func answered() async throws {
        let busy = ScriptedProvider(Names.fcm) { _ in .busy() }
        let halted = ScriptedProvider(Names.apns) { _ in .badCredential }
        let plan = DeliveryService.Setup.of([(busy, Credential()), (halted, Credential())])
        try await Rig.run(Depot(), plan) { rig in
            try await rig.owe([push(1), push(2, bundle: "org.acme"), push(3, bundle: "org.acme")])
            await rig.pass(.seconds(600), step: .milliseconds(500))
            #expect(rig.events.text == ["acme/apns/production halted credential"])
        }
    }

    @Test("A push that alone is never processed does not hold up the others")
    func oneAlone() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "t1" ? .notReached : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1, .urgent)])
            await rig.pass(.seconds(300), step: .milliseconds(500))
            #expect(provider.sent.count < 200, "\(provider.sent.count) attempts")
            #expect(provider.sent.allSatisfy { $0.attempt == 0 })
            try await rig.owe((2...4).map { push($0) })
            await rig.pass(.seconds(12))
            await rig.pass(until: rig.outbox.ended, reaches: 3)
        }
    }

    @Test("A connection that takes a thousand requests with it slows nothing when the next one answers")
    func burst() async throws {
        let lost = Mutex(1_000)
        let isLost = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 1_000) { _ in
            // All thousand are under way when the connection ends.
            await isLost.wait(for: 1)
            return lost.withLock { left in
                left -= 1
                return left >= 0
            } ? .silence : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...2_000).map { push($0, origin: "o\($0 % 5)") })
            await provider.waitForSent(1_000)
            isLost.add()
            await rig.pass(.seconds(3))
            await rig.pass(until: rig.outbox.ended, reaches: 2_000)
            // What was lost goes once more, and the rest once.
            #expect(provider.sent.count == 3_000)
            #expect(rig.events.text.isEmpty && !rig.journal.contains("lane slowed"))
            try await rig.expectRows(0)
        }
    }

    @Test("A call of unknown fate is not sent again; a message is, under the same id")
    func calls() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in push.attempt == 0 ? .silence : .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1, .urgent)])
            try await rig.expect([.known(.retry)], of: [push(2)])
            await rig.pass(.seconds(5))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.addresses == ["t1", "t2", "t2"])
            #expect(provider.sent[1].id == provider.sent[2].id)
            try await rig.expectRows(0)
        }
    }

    @Test("A call that no service has looked at is sent again")
    func unprocessedCall() async throws {
        let first = Mutex(true)
        let provider = ScriptedProvider(Names.fcm) { _ in
            first.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            } ? .notReached : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1, .urgent)])
            await rig.pass(.seconds(5))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(provider.sent.count == 2)
        }
    }

    @Test("A push whose 410 is older than its registration is tried again, and ends after a few attempts")
    func renewed() async throws {
        let depot = Depot()
        let touched = depot.clock.now
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "t1" && push.attempt == 1 ? .accepted : .gone(at: touched - .seconds(60))
        }
        try await Rig.run(depot, .of(provider)) { rig in
            let key = Names.phone
            try await rig.register(key, touchedAt: touched)
            try await rig.expect([.known(.retry)], of: [push(1, record: key, touchedAt: touched)])
            try await rig.expect([.known(.retry)], of: [push(2, record: key, touchedAt: touched)])
            await rig.pass(.seconds(60))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.addresses.count { $0 == "t1" } == 2)
            #expect(provider.addresses.count { $0 == "t2" } == 5)
            let stands = try await rig.store.find([key])[0]?.state
            #expect(stands == .live)
        }
    }
}
