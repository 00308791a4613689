import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Leases, stops and takeovers", .timeLimit(.minutes(30)))
struct LeaseTests {
    @Test(
        "Without renewals nothing is sent after ten of the twenty seconds, and memory goes back",
        arguments: EngineKind.allCases)
    func renewalsStop(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.outbox.set { $0.renew = .unavailable }
            await rig.pass(.milliseconds(9_900))
            try await rig.expect([.accepted], of: [push(1)])
            await rig.pass(.milliseconds(200))
            try await rig.expect([.pending, .pending], of: [push(2), push(3)])
            await rig.outbox.parked.wait(for: 2)
            let lane = try rig.lane()
            #expect(lane.inMemory == 0)
            await rig.pass(.seconds(20), step: .milliseconds(500))
            #expect(provider.sent.count == 1)
            #expect(rig.outbox.claims.count == 0)
            rig.outbox.set { $0.renew = nil }
            await rig.pass(.seconds(6), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(provider.addresses.sorted() == ["t1", "t2", "t3"])
        }
    }

    @Test("No request leaves with a lease that ends before its deadline")
    func sendBefore() async throws {
        let depot = Depot()
        let start = depot.clock.instant
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.outbox.set { $0.renew = .unavailable }
            await rig.pass(.seconds(8), step: .seconds(1))
            try await rig.expect([.accepted], of: [push(1)])
            #expect(provider.leases == [start + .seconds(10)])
        }
    }

    @Test("What was held when a lease lapsed is not sent by its own word, even if renewals go on")
    func lapsed() async throws {
        let depot = Depot()
        let mine = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let theirs = ScriptedProvider(Names.fcm) { _ in .accepted }
        var limits = DeliveryLimits()
        // So seldom that the lane must see the lapse by itself.
        limits.tick = .seconds(60)
        let own = ManualClock()
        try await Rig.run(depot, .of(mine), limits: limits, own: own) { rig in
            try await rig.owe((1...3).map { push($0) })
            // This process sleeps, as in a suspended machine; another takes over and sends.
            depot.clock.advance(by: .seconds(30))
            try await Rig.run(depot, .of(theirs)) { other in
                await other.pass(.milliseconds(100))
                await other.pass(until: other.outbox.ended, reaches: 3)
                #expect(theirs.sent.allSatisfy { $0.epoch > 1 })
            }
            await rig.pass(.seconds(30), step: .seconds(30))
            mine.grant(1)
            // It gives them back unsent, and the store knows that they are no longer its own.
            await rig.outbox.foreign.wait(for: 3)
            try await rig.expect([.accepted], of: [push(4)])
            #expect(mine.addresses == ["t4"])
        }
    }

    @Test("A late answer of an old epoch changes nothing")
    func lateSettle() async throws {
        let depot = Depot()
        let answers = AwaitedCount()
        let slow = ScriptedProvider(Names.fcm) { _ in await Answer.rejected.after(answers) }
        let heir = ScriptedProvider(Names.fcm) { _ in .busy(.seconds(120)) }
        try await Rig.run(depot, .of(slow), own: ManualClock()) { rig in
            try await rig.owe([push(1)])
            await slow.waitForSent(1)
            depot.clock.advance(by: .seconds(30))
            try await Rig.run(depot, .of(heir)) { other in
                await other.pass(.milliseconds(100))
                await heir.waitForSent(1)
                await other.outbox.parked.wait(for: 1)
                answers.add()
                await rig.outbox.foreign.wait(for: 1)
                #expect(rig.outbox.ended.count == 0)
                try await other.expectRows(1)
                #expect(heir.sent[0].epoch > slow.sent[0].epoch)
            }
        }
    }

    @Test(
        "A graceful stop answers and settles what is under way; the next process sends the rest, each once",
        arguments: EngineKind.allCases)
    func gracefulStop(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let answers = AwaitedCount()
        let first = ScriptedProvider(Names.fcm, slots: 2) { _ in await Answer.accepted.after(answers) }
        try await Rig.run(depot, .of(first)) { rig in
            async let reply = rig.admit((1...5).map { push($0) }, within: .seconds(30))
            await first.waitForSent(2)
            await rig.stop()
            await rig.outbox.parked.wait(for: 3)
            answers.add()
            let outcomes = try await reply
            #expect(outcomes == [.accepted, .accepted, .pending, .pending, .pending])
            await rig.outbox.ended.wait(for: 2)
        }
        #expect(first.sent.count == 2)
        let second = ScriptedProvider(Names.fcm) { _ in .accepted }
        depot.clock.advance(by: .seconds(20))
        try await Rig.run(depot, .of(second)) { rig in
            await rig.pass(.milliseconds(200))
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            try await rig.expectRows(0)
        }
        #expect(Set(first.addresses + second.addresses).count == 5)
        #expect(second.sent.count == 3)
    }

    @Test(
        "Killed in the middle, everything unsettled is sent again and nothing is lost",
        arguments: EngineKind.allCases)
    func killed(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 16 }
        let first = ScriptedProvider(Names.fcm, slots: 4) { _ in .accepted }
        let accepted = (1...100).map { push($0) }
        try await Rig.run(depot, .of(first), limits: limits) { rig in
            try await rig.owe(Array(accepted[..<60]))
            await rig.outbox.ended.wait(for: 10)
            rig.outbox.cut()
            // Nothing is committed from here on, as after SIGKILL.
        }
        let second = ScriptedProvider(Names.fcm, slots: 4) { _ in .accepted }
        depot.clock.advance(by: .seconds(20))
        try await Rig.run(depot, .of(second), limits: limits) { rig in
            let left = try await rig.store.load().rows
            #expect(left <= 50)
            try await rig.owe(Array(accepted[60...]))
            await rig.pass(.seconds(2))
            await rig.pass(until: rig.outbox.ended, reaches: left + 40)
            try await rig.expectRows(0)
        }
        #expect(Set(first.addresses + second.addresses).count == 100)
        #expect(Set(second.sent.map(\.id)).count == second.sent.count)
    }

    @Test("A reply that waits when the core ends goes out as pending")
    func repliesEnd() async throws {
        let depot = Depot()
        let still = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(still)) { rig in
            async let waiting = rig.admit([push(1)])
            await still.waitForReservation()
            await rig.stop()
            let outcomes = try await waiting
            #expect(outcomes == [.pending])
            try await rig.expect([.pending], of: [push(2)])
        }
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        depot.clock.advance(by: .seconds(20))
        try await Rig.run(depot, .of(provider)) { rig in
            await rig.pass(.milliseconds(200))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
        }
    }
}
