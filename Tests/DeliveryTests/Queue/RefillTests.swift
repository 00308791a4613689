import AtRest
import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Refilling by class", .timeLimit(.minutes(30)))
struct RefillTests {
    private static let full: DeliveryLimits = {
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 40 }
        return limits
    }()

    /// A service that puts calls off once and holds everything else until told to go on.
    private static func service(_ gate: AwaitedCount) -> ScriptedProvider {
        ScriptedProvider(Names.fcm) { push in
            if push.pushClass == .urgent { return push.attempt == 0 ? .busy(.seconds(10)) : .accepted }
            await gate.wait(for: 1)
            return .accepted
        }
    }

    @Test(
        "A call that was put off into the store is next when it is due, though memory is full",
        arguments: EngineKind.allCases)
    func call(_ kind: EngineKind) async throws {
        let gate = AwaitedCount()
        let provider = Self.service(gate)
        try await Rig.run(Depot(kind), .of(provider), limits: Self.full) { rig in
            try await rig.expect([.known(.retry)], of: [push(1, .urgent)])
            await rig.outbox.parked.wait(for: 1)
            try await rig.owe((2...100).map { push($0, origin: "o\($0 % 7)") })
            await provider.waitForSent(2)
            await rig.pass(.seconds(12))
            await rig.pass(until: rig.outbox.claimed, reaches: 1)
            gate.add()
            // A few may leave before the lane has what the store gave it, and not half a memory.
            await rig.pass(untilSent: 12, by: provider)
            #expect(provider.addresses[2..<12].contains("t1"))
            await rig.pass(until: rig.outbox.ended, reaches: 100)
        }
    }

    @Test("What waits for a time of its own is tried once when an operator says so, and no sooner")
    func hurry() async throws {
        let provider = ScriptedProvider(Names.fcm) { $0.attempt < 2 ? .busy(.seconds(600)) : .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...4).map { push($0, origin: "o\($0)") })
            await rig.pass(untilSent: 4, by: provider)
            await rig.outbox.parked.wait(for: 4)
            await rig.pass(.seconds(20))
            #expect(provider.sent.count == 4)
            rig.service.hurry(Names.fcm)
            await rig.pass(untilSent: 8, by: provider)
            await rig.outbox.parked.wait(for: 8)
            // Each once, whatever became of it.
            await rig.pass(.seconds(20))
            #expect(provider.sent.count == 8)
            rig.service.hurry(Names.fcm)
            await rig.pass(until: rig.outbox.ended, reaches: 4)
        }
    }

    @Test("A message goes before what is in the background, in the same way")
    func message() async throws {
        let gate = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { push in
            if push.pushClass == .normal { return push.attempt == 0 ? .busy(.seconds(10)) : .accepted }
            await gate.wait(for: 1)
            return .accepted
        }
        try await Rig.run(Depot(), .of(provider), limits: Self.full) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.outbox.parked.wait(for: 1)
            try await rig.owe((2...60).map { push($0, .background) })
            await provider.waitForSent(2)
            await rig.pass(.seconds(12))
            await rig.pass(until: rig.outbox.claimed, reaches: 1)
            gate.add()
            // A few may leave before the lane has what the store gave it, and not half a memory.
            await rig.pass(untilSent: 12, by: provider)
            #expect(provider.addresses[2..<12].contains("t1"))
        }
    }

    @Test("A call that a dead relay left is next at the heir, though its memory is full")
    func takeOver() async throws {
        let gate = AwaitedCount()
        let dead = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let heir = ScriptedProvider(Names.fcm) { push in
            if push.pushClass != .urgent { await gate.wait(for: 1) }
            return .accepted
        }
        let depot = Depot()
        try await Fleet.run(depot, [.of(dead), .of(heir)], limits: Self.full) { rigs in
            try await rigs[1].owe((2...100).map { push($0) })
            await heir.waitForSent(1)
            try await rigs[0].owe([push(1, .urgent)])
            rigs[0].outbox.cut()
            await rigs.pass(.seconds(40))
            await rigs[1].pass(until: rigs[1].outbox.claimed, reaches: 1)
            gate.add()
            await rigs[1].pass(untilSent: 11, by: heir)
            #expect(heir.addresses[1..<11].contains("t1"))
        }
    }
}
