import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Calls that are held", .timeLimit(.minutes(30)))
struct HoldTests {
    private func isOverloaded(_ error: any Error) -> Bool {
        guard case .overloaded? = error as? IntakeRefusal<SampleError> else { return false }
        return true
    }

    @Test(
        "A full outbox holds a call until a settlement has made room, and then takes it in",
        arguments: EngineKind.allCases)
    func full(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(kind, rows: 3), .of(provider), holds: true) { rig in
            try await rig.owe((1...3).map { push($0) })
            async let reply = rig.admit([push(4), push(5)])
            // The lease, the tick, the sweep, and anyone who lets those go who are held.
            await rig.clock.sleepers(atLeast: 4)
            await rig.pass(.seconds(3), sleepers: 4)
            try await rig.expectRows(3)
            provider.grant(3)
            await rig.outbox.ended.wait(for: 3)
            provider.grant(2)
            await rig.pass(until: rig.outbox.ended, reaches: 5)
            let outcomes = try await reply
            #expect(outcomes == [.accepted, .accepted])
        }
    }

    @Test("A store that is out holds a call until it answers again; the call's own stay is all it waits for")
    func out() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            rig.outbox.set { $0.accept = .unavailable }
            async let reply = rig.passing { try await rig.admit([push(1)]) }
            await rig.outbox.refusals.wait(for: 5)
            rig.outbox.set { $0.accept = nil }
            let outcomes = try await reply
            #expect(outcomes == [.accepted])
            let began = rig.clock.now
            rig.outbox.set { $0.accept = .noSpace }
            let refusals = rig.outbox.refusals.count
            do {
                _ = try await rig.passing { try await rig.admit([push(2)]) }
                Issue.record("a store that is out took a push in")
            } catch {
                #expect(isOverloaded(error))
            }
            // Once at first, once a second, and at the end.
            #expect((2...14).contains(rig.outbox.refusals.count - refusals))
            #expect((Duration.seconds(12)..<Duration.seconds(14)).contains(rig.clock.now.since(began)))
        }
    }

    @Test("A reply waits no longer for first attempts than the call's stay has left")
    func reply() async throws {
        let gate = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 1) { _ in await Answer.accepted.after(gate) }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            rig.outbox.set { $0.accept = .unavailable }
            async let reply = rig.admit([push(1)])
            await rig.outbox.refusals.wait(for: 1)
            await rig.pass(.seconds(10))
            rig.outbox.set { $0.accept = nil }
            while provider.sent.isEmpty { await rig.pass(.milliseconds(100)) }
            let began = rig.clock.now
            await rig.pass(.milliseconds(2_200))
            let outcomes = try await reply
            #expect(outcomes == [.pending])
            #expect(rig.clock.now.since(began) < .seconds(3))
            gate.add()
            await rig.pass(until: rig.outbox.ended, reaches: 1)
        }
    }

    @Test(
        "A commit whose answer was lost is not doubled by asking again, and the reply tells what came of it")
    func uncertain() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            push.address == "t1" ? .accepted : .rejected
        }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            rig.outbox.set { $0.lostAccepts = 1 }
            let outcomes = try await rig.passing { try await rig.admit([push(1), push(2)]) }
            #expect(outcomes == [.accepted, .known(.rejected)])
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.sent.count == 2)
            try await rig.expectRows(0)
        }
    }

    @Test("What no mark would recognise is not asked for again when an answer was lost")
    func unmarked() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            rig.outbox.set { $0.lostAccepts = 1 }
            var unnamed = push(1)
            unnamed.repeatIdentity = nil
            await #expect(throws: (any Error).self) { _ = try await rig.admit([unnamed]) }
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(provider.sent.count == 1)
        }
    }

    @Test("A fault that does not pass is no reason to wait, nor is there room for more than may be held")
    func refused() async throws {
        let limits = changing(DeliveryLimits()) { $0.heldCalls = 1 }
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), limits: limits, holds: true) { rig in
            rig.outbox.set { $0.accept = .corrupt }
            await #expect(throws: (any Error).self) { _ = try await rig.admit([push(1)]) }
            rig.outbox.set { $0.accept = .unavailable }
            async let held = rig.admit([push(2)])
            await rig.clock.sleepers(atLeast: 4)
            await #expect(throws: (any Error).self) { _ = try await rig.admit([push(3)]) }
            rig.outbox.set { $0.accept = nil }
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            let outcomes = try await held
            #expect(outcomes == [.accepted])
        }
    }

    @Test("Calls that are held when the relay stops are refused, not forgotten")
    func stops() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            rig.outbox.set { $0.accept = .unavailable }
            async let held = rig.admit([push(1)])
            await rig.clock.sleepers(atLeast: 4)
            await rig.stop()
            do {
                _ = try await held
                Issue.record("a stopped relay took a push in")
            } catch {
                #expect(isOverloaded(error))
            }
        }
    }

    @Test("What undoes a call of which something failed is made again where the store fails for a moment")
    func undoes() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), holds: true) { rig in
            let key = RecordKey(Space(Names.instance, "call"), Secret("one".utf8))
            let taken = Record(key: key, touchedAt: .distantPast, body: Secret([1]))
            let ask = { @Sendable in
                let verdict = Verdict<[FirstOutcome], SampleError>(
                    pushes: [push(1, bundle: "org.nobody"), push(2)], changes: [.put(taken, if: .absent)],
                    reply: .withdrawingAfterFirstAttempt(
                        deadline: .seconds(11), undoing: [.delete(key, if: .any)]
                    ) { $0 },
                    refusal: { _ in SampleError() })
                return try await rig.service.intake.admit(verdict, instance: Names.instance)
            }
            rig.registry.failDeletion(.unavailable)
            let first = try await rig.passing(until: ask) {
                // No time passes before it has failed.
                await rig.registry.refusals.wait(for: 1)
            }
            #expect(first == [.dropped, .accepted])
            // The same bytes are taken again, and what was accepted of them is known.
            let second = try await ask()
            #expect(second == [.dropped, .accepted])
            #expect(provider.addresses == ["t2"])
        }
    }
}
