import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Repeated calls", .timeLimit(.minutes(30)))
struct RepeatTests {
    @Test("Repeated while it is owed, a call waits for the same push", arguments: EngineKind.allCases)
    func owed(_ kind: EngineKind) async throws {
        let answers = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm, slots: 4) { _ in await Answer.rejected.after(answers) }
        let trace = Trace()
        try await Rig.run(Depot(kind), .of(provider), trace: trace) { rig in
            async let first = rig.admit([push(1)])
            await provider.waitForSent(1)
            async let second = rig.admit([push(1)])
            await trace.until { $0.count == 2 }
            answers.add()
            let outcomes = try await [first, second]
            #expect(outcomes == [[.known(.rejected)], [.known(.rejected)]])
            #expect(provider.sent.count == 1)
        }
    }

    @Test("Repeated after it was settled, a call is answered from the mark", arguments: EngineKind.allCases)
    func settled(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { push in push.address == "t1" ? .accepted : .rejected }
        let limits = changing(DeliveryLimits()) { $0.recentOutcomes = 0 }
        try await Rig.run(Depot(kind), .of(provider), limits: limits) { rig in
            try await rig.expect([.accepted, .known(.rejected)], of: [push(1), push(2)])
            await rig.outbox.ended.wait(for: 2)
            try await rig.expect([.accepted, .known(.rejected)], of: [push(1), push(2)])
            // In another order, alone, from another sender: only the last is a new push.
            try await rig.expect([.known(.rejected)], of: [push(2)])
            try await rig.expect([.accepted], of: [push(1)])
            #expect(provider.sent.count == 2)
            try await rig.expect([.accepted], of: [push(1, origin: "two")])
            #expect(provider.sent.count == 3)
        }
    }

    @Test("Repeated after a restart, a call is answered from the mark", arguments: EngineKind.allCases)
    func restarted(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let first = ScriptedProvider(Names.fcm) { push in
            push.address == "t1" ? .accepted : .busy(.seconds(90))
        }
        try await Rig.run(depot, .of(first)) { rig in
            try await rig.expect([.accepted, .known(.retry)], of: [push(1), push(2)])
            await rig.outbox.ended.wait(for: 1)
            await rig.outbox.parked.wait(for: 1)
        }
        depot.clock.advance(by: .seconds(25))
        let second = ScriptedProvider(Names.fcm) { _ in .rejected }
        try await Rig.run(depot, .of(second)) { rig in
            try await rig.expect([.accepted, .known(.retry)], of: [push(1), push(2)])
            #expect(second.sent.isEmpty)
            try await rig.expectRows(1)
        }
    }

    @Test(
        "Two equal items of one call are both sent, and so is nothing when the call comes again",
        arguments: EngineKind.allCases)
    func equalItems(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            try await rig.expect([.accepted, .accepted], of: [push(1), push(1)])
            await rig.outbox.ended.wait(for: 2)
            #expect(Set(provider.sent.map(\.id)).count == 2)
            try await rig.expect([.accepted, .accepted], of: [push(1), push(1)])
            #expect(provider.sent.count == 2)
        }
    }

    @Test("After ten minutes it is a new push", arguments: EngineKind.allCases)
    func later(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.expect([.accepted], of: [push(1)])
            await rig.outbox.ended.wait(for: 1)
            await rig.pass(.seconds(590), step: .seconds(4))
            try await rig.expect([.accepted], of: [push(1)])
            #expect(provider.sent.count == 1)
            // An engine that keeps its marks in generations may hold one a little longer than it must.
            await rig.pass(.seconds(250), step: .seconds(4))
            try await rig.expect([.accepted], of: [push(1)])
            #expect(provider.sent.count == 2)
        }
    }

    @Test("Repeated while the lane is halted, a call does not wait")
    func halted() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .badCredential }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            try await rig.expect([.pending], of: [push(2)])
            let again = try await rig.admit([push(1), push(2)])
            #expect(again == [.known(.misconfigured), .pending])
            #expect(provider.addresses == ["t1"])
            try await rig.expectRows(2)
        }
    }
}
