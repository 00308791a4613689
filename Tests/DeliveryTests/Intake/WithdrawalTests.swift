import AtRest
import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("Pushes that are withdrawn before their sender hears that they failed", .timeLimit(.minutes(30)))
struct WithdrawalTests {
    private static let call = RecordKey(Space(Names.instance, "call"), Secret("one".utf8))

    /// A record of the call, with a word in it.
    private static func record(_ word: String) -> Record {
        Record(key: call, touchedAt: .distantPast, body: Secret(word.utf8))
    }

    private func admit(
        _ pushes: [Push], _ rig: Rig, changes: [Change] = [], undoing: [Change] = []
    ) async throws -> [FirstOutcome] {
        let verdict = Verdict<[FirstOutcome], SampleError>(
            pushes: pushes, changes: changes,
            reply: .withdrawingAfterFirstAttempt(deadline: .seconds(3), undoing: undoing) { $0 },
            refusal: { _ in SampleError() })
        return try await rig.service.intake.admit(verdict, instance: Names.instance)
    }

    /// The same call once more: refused while its record stands, and undone where something of it failed.
    private func call(_ pushes: [Push], _ rig: Rig) async throws -> [FirstOutcome] {
        try await admit(
            pushes, rig, changes: [.put(Self.record("taken"), if: .absent)],
            undoing: [.delete(Self.call, if: .any)])
    }

    @Test(
        "Nothing is left of them when the reply leaves, and a repeat is sent anew",
        arguments: EngineKind.allCases)
    func withdrawn(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 3) { push in
            switch push.address {
            case "t1": .rejected
            case "t2": .badTopic
            default: .busy()
            }
        }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let pushes = [push(1), push(2), push(3)]
            let failed: [FirstOutcome] = [.known(.rejected), .known(.misconfigured), .known(.retry)]
            let first = try await admit(pushes, rig)
            #expect(first == failed)
            try await rig.expectRows(0)
            let second = try await admit(pushes, rig)
            #expect(second == failed)
            #expect(provider.sent.count == 6)
            try await rig.expectRows(0)
        }
    }

    @Test(
        "A call of which something failed is taken again, and what was accepted of it is not sent twice",
        arguments: EngineKind.allCases)
    func undone(_ kind: EngineKind) async throws {
        let isBack = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 3) { push in
            push.address == "t1" || isBack.count > 0 ? .accepted : .busy()
        }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let pushes = [push(1), push(2), push(3)]
            let first = try await call(pushes, rig)
            #expect(first == [.accepted, .known(.retry), .known(.retry)])
            isBack.add()
            let second = try await call(pushes, rig)
            #expect(second == [.accepted, .accepted, .accepted])
            #expect(provider.addresses.sorted() == ["t1", "t2", "t2", "t3", "t3"])
            // All of it was sent: the call is known again.
            await #expect(throws: (any Error).self) { try await call(pushes, rig) }
            #expect(provider.sent.count == 5)
        }
    }

    @Test("A push that no app serves is undone too, before the reply leaves")
    func droppedAndUndone() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            for _ in 0..<2 {
                let outcomes = try await call([push(1, bundle: "org.nobody"), push(2)], rig)
                #expect(outcomes == [.dropped, .accepted])
            }
            #expect(provider.addresses == ["t2"])
        }
    }

    @Test(
        "A push that a lane spares its registration for has failed: nothing of it is left, and it may come again",
        arguments: EngineKind.allCases)
    func spared(_ kind: EngineKind) async throws {
        let isBack = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { _ in isBack.count > 0 ? .accepted : .badDeviceToken }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            // The lane halts, and from now on no registration is blamed.
            for number in 1...19 { try await rig.owe([push(number)]) }
            await rig.outbox.ended.wait(for: 19)
            let outcomes = try await call([push(20)], rig)
            #expect(outcomes == [.known(.misconfigured)])
            #expect(rig.events.text == ["acme/fcm/production halted targets"])
            try await rig.expectRows(0)
            isBack.add()
            async let again = call([push(20)], rig)
            await rig.pass(untilSent: 21, by: provider)
            #expect(try await again == [.pending])
        }
    }

    @Test("What a reply that has left called pending is owed, whatever a later call would withdraw")
    func promised() throws {
        let attempts = FirstAttempts(limits: DeliveryLimits())
        let start = ContinuousClock.now
        let (old, new) = (samplePush(1).id, samplePush(2).id)
        let told = try #require(attempts.group(count: 1, deadline: start + .seconds(2), undoing: []))
        attempts.watch(old, for: told, at: 0)
        attempts.tick(start + .seconds(2))
        let later = try #require(attempts.group(count: 2, deadline: start + .seconds(9), undoing: []))
        attempts.watch(old, for: later, at: 0)
        attempts.watch(new, for: later, at: 1)
        #expect(attempts.withdrawal(of: old) == nil)
        #expect(attempts.withdrawal(of: new) != nil)
    }

    @Test(
        "What a halted lane called pending is owed, whatever a repeat would withdraw when the lane goes on",
        arguments: EngineKind.allCases)
    func promisedByHalt(_ kind: EngineKind) async throws {
        let goesOn = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { push in
            switch push.address {
            case "t1": return .badCredential
            case "t2": return .accepted
            default:
                await goesOn.wait(for: 1)
                return .busy()
            }
        }
        try await Rig.run(Depot(kind), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            for number in 2...3 {
                let outcomes = try await admit([push(number)], rig)
                #expect(outcomes == [.pending])
            }
            // The probe is accepted, and lets the other go.
            await rig.pass(until: provider.requests, reaches: 3, step: .seconds(1))
            #expect(provider.addresses == ["t1", "t2", "t3"])
            async let again = admit([push(3)], rig)
            await rig.outbox.accepts.wait(for: 4)
            goesOn.add()
            #expect(try await again == [.pending])
            try await rig.expectRows(2)
        }
    }

    @Test("Whoever asks while a push is withdrawn, or when it has been, hears that it failed")
    func copies() async throws {
        let attempts = FirstAttempts(limits: DeliveryLimits())
        let start = ContinuousClock.now
        func group() throws -> FirstAttempts.Group {
            try #require(attempts.group(count: 1, deadline: start + .seconds(2), undoing: []))
        }
        let (lost, kept) = (samplePush(1).id, samplePush(2).id)
        for (id, outcome) in [(lost, FirstOutcome.known(.retry)), (kept, .pending)] {
            let first = try group()
            attempts.watch(id, for: first, at: 0)
            #expect(attempts.withdrawal(of: id) != nil)
            // The store has not heard of it yet, and has said that the push is owed.
            let during = try group()
            #expect(!attempts.tell(id, to: during, at: 0))
            #expect(!attempts.promise(id))
            attempts.watch(id, for: during, at: 0)
            // Nobody is told by the deadline what the store may say otherwise.
            attempts.tick(start + .seconds(3))
            // `.pending`: the push was another's by then.
            attempts.resolve(id, outcome)
            #expect(await first.wait() == [outcome])
            #expect(await during.wait() == [outcome])
            let after = try group()
            attempts.watch(id, for: after, at: 0)
            #expect(await after.wait() == [outcome])
            #expect(attempts.promise(id) == (outcome == .pending))
        }
    }

    @Test("A stop says nothing of a push that is being withdrawn, and that others are owed")
    func stopped() async throws {
        let attempts = FirstAttempts(limits: DeliveryLimits())
        let deadline = ContinuousClock.now + .seconds(2)
        let both = try #require(attempts.group(count: 2, deadline: deadline, undoing: []))
        let other = try #require(attempts.group(count: 1, deadline: deadline, undoing: []))
        for (place, number) in [1, 2].enumerated() {
            attempts.watch(samplePush(number).id, for: both, at: place)
        }
        attempts.watch(samplePush(3).id, for: other, at: 0)
        #expect(attempts.withdrawal(of: samplePush(2).id) != nil)
        attempts.close()
        #expect(await both.wait() == nil)
        #expect(await other.wait() == [.pending])
    }

    @Test("Of copies that come in one moment no one hears of a push that another's failure took back")
    func together() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 8) { _ in .busy(.seconds(600)) }
        try await Rig.run(Depot(.sqlite), .of(provider)) { rig in
            var owed = 0
            for number in 1...60 {
                let outcomes = try await withThrowingTaskGroup(of: FirstOutcome.self) { copies in
                    for _ in 0..<6 { copies.addTask { try await admit([push(number)], rig)[0] } }
                    return try await copies.reduce(into: []) { $0.append($1) }
                }
                if outcomes.contains(.pending) { owed += 1 }
            }
            try await rig.expectRows(owed)
        }
    }

    @Test("Nothing is undone where all was accepted, or is pending")
    func notUndone() async throws {
        let answers = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            if push.address == "t2" { await answers.wait(for: 1) }
            return push.address == "t2" ? .busy() : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            async let outcomes = call([push(1), push(2)], rig)
            await provider.waitForSent(2)
            await rig.pass(.seconds(4))
            let known = try await outcomes
            #expect(known == [.accepted, .pending])
            answers.add()
            await rig.pass(untilSent: 3, by: provider)
            await #expect(throws: (any Error).self) { try await call([push(1), push(2)], rig) }
        }
    }

    @Test(
        "A call that failed in one process is taken again by another, once", arguments: SharedEngine.allCases)
    func shared(_ engine: SharedEngine) async throws {
        let depot = try await Depot.shared(engine)
        let out = ScriptedProvider(Names.fcm, slots: 2) { push in push.address == "t1" ? .accepted : .busy() }
        let back = ScriptedProvider(Names.fcm, slots: 2) { _ in .accepted }
        try await Fleet.run(depot, [.of(out), .of(back)]) { rigs in
            let pushes = [push(1), push(2)]
            let first = try await call(pushes, rigs[0])
            #expect(first == [.accepted, .known(.retry)])
            try await rigs[1].expectRows(0)
            let second = try await call(pushes, rigs[1])
            #expect(second == [.accepted, .accepted])
            #expect(back.addresses == ["t2"])
            for rig in rigs { await #expect(throws: (any Error).self) { try await call(pushes, rig) } }
        }
    }

    @Test("A push that is another's when it is to be withdrawn goes on there, and is pending")
    func takenOver() async throws {
        let answers = AwaitedCount()
        let slow = ScriptedProvider(Names.fcm) { _ in await Answer.busy().after(answers) }
        let other = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Fleet.run(Depot(), [.of(slow), .of(other)]) { rigs in
            async let outcomes = admit([push(1)], rigs[0])
            await slow.waitForSent(1)
            // Cut off from the store until its lease has run out.
            rigs[0].outbox.set { ($0.settle, $0.renew) = (.unavailable, .unavailable) }
            answers.add()
            for _ in 0..<Rig.patience where other.sent.isEmpty { await rigs.pass(.seconds(1)) }
            rigs[0].outbox.set { ($0.settle, $0.renew) = (nil, nil) }
            for _ in 0..<Rig.patience where rigs[0].outbox.foreign.count == 0 {
                await rigs.pass(.seconds(1))
            }
            let known = try await outcomes
            #expect(known == [.pending])
            #expect(slow.sent.count == 1 && other.sent.count == 1)
        }
    }

    @Test("If its registration ends before that, the reply leaves when the call may be taken again")
    func endsMeanwhile() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .busy() }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let record = try await FeedbackTests.register(rig)
            let sent = try FeedbackTests.pushed(1, of: record, rig)
            rig.outbox.refuse { $0.step == .withdraw }
            let told = { @Sendable () async throws -> ([FirstOutcome], Record?) in
                let outcomes = try await call([sent], rig)
                return (outcomes, try await rig.store.find([Self.call]).first ?? nil)
            }
            async let reply = told()
            await rig.outbox.refusals.wait(for: 1)
            _ = try await rig.store.apply([.delete(FeedbackTests.key, if: .any)])
            try await rig.expect([.known(.retry)], of: [push(9)])
            rig.outbox.refuse(nil)
            await rig.pass(until: rig.outbox.foreign, reaches: 1)
            let (outcomes, standing) = try await reply
            #expect(outcomes == [.known(.rejected)] && standing == nil)
        }
    }

    /// When the push comes back: its sender has heard that it is owed, or the store has still to be told.
    @Test("If it comes back, it is sent, and not withdrawn after all", arguments: [true, false])
    func comesBack(_ isTold: Bool) async throws {
        let isBack = AwaitedCount()
        let mine = ScriptedProvider(Names.fcm) { _ in isBack.count > 0 ? .accepted : .busy() }
        let theirs = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Fleet.run(Depot(), [.of(mine), .of(theirs)]) { rigs in
            rigs[0].outbox.set { $0.renew = .unavailable }
            rigs[0].outbox.refuse { $0.step == .withdraw }
            async let reply = call([push(1)], rigs[0])
            await mine.waitForSent(1)
            // The other takes it over, and dies.
            await rigs[0].pass(until: rigs[1].outbox.claimed, reaches: 1)
            if isTold {
                rigs[0].outbox.refuse(nil)
                await rigs[0].pass(until: rigs[0].outbox.foreign, reaches: 1)
            }
            rigs[1].outbox.cut()
            isBack.add()
            rigs[0].outbox.set { $0.renew = nil }
            await rigs[0].pass(until: rigs[0].outbox.claimed, reaches: 1)
            rigs[0].outbox.refuse(nil)
            await rigs[0].pass(until: rigs[0].outbox.ended, reaches: 1)
            #expect(mine.addresses == ["t1", "t1"])
            #expect(try await reply == [.pending])
            try await rigs[0].expectRows(0)
        }
    }

    @Test("What was accepted keeps its mark", arguments: EngineKind.allCases)
    func accepted(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            for _ in 0..<2 {
                let outcomes = try await admit([push(1)], rig)
                #expect(outcomes == [.accepted])
            }
            #expect(provider.sent.count == 1)
        }
    }

    @Test("What has no answer by the deadline is pending, and goes on")
    func pending() async throws {
        let answers = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { _ in await Answer.busy().after(answers) }
        try await Rig.run(Depot(), .of(provider)) { rig in
            async let outcomes = admit([push(1)], rig)
            await provider.waitForSent(1)
            await rig.pass(.seconds(4))
            let known = try await outcomes
            #expect(known == [.pending])
            answers.add()
            await rig.pass(untilSent: 2, by: provider)
        }
    }

    @Test("What may have arrived is pending, and goes on under its name")
    func unheard() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .silence }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let outcomes = try await admit([push(1)], rig)
            #expect(outcomes == [.pending])
            await rig.pass(untilSent: 2, by: provider)
            #expect(Set(provider.sent.map(\.id)).count == 1)
        }
    }

    @Test("A push that another reply has told of already is not withdrawn")
    func toldAlready() async throws {
        let answers = AwaitedCount()
        let trace = Trace()
        let provider = ScriptedProvider(Names.fcm) { _ in await Answer.busy().after(answers) }
        try await Rig.run(Depot(), .of(provider), trace: trace) { rig in
            async let plain = rig.admit([push(1)])
            await provider.waitForSent(1)
            async let withdrawing = admit([push(1)], rig)
            await trace.until { $0.count == 2 }
            answers.add()
            let outcomes = try await [plain, withdrawing]
            #expect(outcomes == [[.known(.retry)], [.pending]])
            await rig.pass(untilSent: 2, by: provider)
        }
    }
}
