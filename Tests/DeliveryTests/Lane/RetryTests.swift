import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Retries", .timeLimit(.minutes(30)))
struct RetryTests {
    @Test("A retry keeps its attempt and its time over a restart", arguments: EngineKind.allCases)
    func restart(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let first = ScriptedProvider(Names.fcm) { _ in .busy(.seconds(60)) }
        try await Rig.run(depot, .of(first)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.outbox.parked.wait(for: 1)
        }
        let second = ScriptedProvider(Names.fcm) { _ in .accepted }
        // The dead owner's twenty seconds, by the store's clock; forty of the retry's sixty are left.
        depot.clock.advance(by: .seconds(20))
        try await Rig.run(depot, .of(second)) { rig in
            await rig.pass(.seconds(38), step: .seconds(1))
            #expect(second.sent.isEmpty)
            await rig.pass(.seconds(4), step: .seconds(1))
            await rig.pass(untilSent: 1, by: second)
            #expect(second.sent[0].attempt == 1)
            #expect(second.sent[0].id == first.sent[0].id)
            await rig.outbox.ended.wait(for: 1)
            try await rig.expectRows(0)
        }
    }

    @Test("Retry-After is honoured", arguments: [2, 60, 300])
    func retryAfter(seconds: Int) async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.attempt == 0 ? .busy(.seconds(seconds)) : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.pass(.seconds(seconds) - .milliseconds(100), step: .seconds(1))
            #expect(provider.sent.count == 1)
            // The first step's jitter is at most one second.
            await rig.pass(.milliseconds(1_200))
            await rig.pass(untilSent: 2, by: provider)
            await rig.pass(until: rig.outbox.ended, reaches: 1)
        }
    }

    @Test("Each attempt is counted, and the wait doubles up to its cap")
    func attempts() async throws {
        let depot = Depot()
        let times = Trace()
        let provider = ScriptedProvider(Names.fcm) { push in
            times.add("\(push.attempt)")
            return push.attempt < 6 ? .busy() : .accepted
        }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.owe([push(1)])
            // One, two, four … 32 seconds at most: 63 in all, and a tick for each.
            await rig.pass(.seconds(66), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(times.text == ["0", "1", "2", "3", "4", "5", "6"])
        }
    }

    @Test(
        "A retry that would come after custody ends is settled and counted", arguments: EngineKind.allCases)
    func custody(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { _ in .busy(.seconds(60)) }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.expect(
                [.known(.retry)], of: [push(1, custodyEnds: depot.clock.now + .seconds(30))])
            await rig.outbox.ended.wait(for: 1)
            #expect(rig.custodyEnded.count == 1)
            try await rig.expectRows(0)
        }
    }

    @Test("A push whose custody has ended since the last tick is not sent when a place comes free")
    func custodyBetweenTicks() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.tick = .seconds(60) }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            try await rig.owe([push(1, custodyEnds: depot.clock.now + .seconds(3)), push(2)])
            await rig.pass(.seconds(4), step: .seconds(4))
            provider.grant(1)
            await rig.outbox.ended.wait(for: 2)
            #expect(provider.addresses == ["t2"])
            #expect(rig.custodyEnded.count == 1)
        }
    }

    @Test("A push whose custody ends while it waits is never sent, is settled, and is counted")
    func custodyWaiting() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            let ends = depot.clock.now + .seconds(5)
            try await rig.owe((1...10).map { push($0, custodyEnds: ends) })
            // Six of them wait in the store.
            await rig.pass(.seconds(8), step: .milliseconds(500))
            await rig.pass(until: rig.custodyEnded, reaches: 10)
            provider.grant(1)
            await rig.pass(.seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 10)
            #expect(provider.sent.isEmpty)
            try await rig.expectRows(0)
        }
    }

    @Test("A retry that sleeps holds no slot")
    func slot() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "t1" && push.attempt == 0 ? .busy(.seconds(4)) : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            try await rig.expect([.accepted, .accepted], of: [push(2), push(3)])
            #expect(provider.addresses == ["t1", "t2", "t3"])
            await rig.pass(.seconds(6), step: .milliseconds(500))
            await rig.pass(untilSent: 4, by: provider)
        }
    }

    @Test(
        "Parked and claimed again, a push keeps its attempt and its first outcome",
        arguments: EngineKind.allCases)
    func roundTrip(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "t1" && push.attempt < 2 ? .busy(.seconds(3)) : .accepted
        }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 1 }
        try await Rig.run(Depot(kind), .of(provider), limits: limits) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.outbox.retried.wait(for: 1)
            // Memory holds one: the call takes the place of the retry that sleeps.
            try await rig.expect([.accepted], of: [push(2, .urgent)])
            await rig.outbox.parked.wait(for: 1)
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.pass(.seconds(5), step: .milliseconds(500))
            await rig.pass(untilSent: 3, by: provider)
            #expect(provider.sent.map(\.attempt) == [0, 0, 1])
            await rig.pass(.seconds(6), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.sent.map(\.attempt) == [0, 0, 1, 2])
            try await rig.expect([.known(.retry)], of: [push(1)])
            #expect(Set(provider.sent.map(\.id)).count == 2)
        }
    }

    @Test("A distant Retry-After keeps no later push waiting in the store")
    func distantRetry() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { push in
            push.address == "t1" ? .busy(.seconds(600)) : .accepted
        }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            try await rig.owe([push(1)])
            provider.grant(1)
            await rig.outbox.parked.wait(for: 1)
            // The lane asks the store, and hears: not for ten minutes.
            await rig.pass(.milliseconds(500))
            await rig.pass(until: rig.outbox.claims, reaches: 1)
            try await rig.owe((2...40).map { push($0) })
            await rig.pass(.seconds(3))
            await rig.pass(until: rig.outbox.ended, reaches: 39)
            #expect(provider.sent.count == 40)
        }
    }
}
