import Delivery
import PushModel
import PushTesting
import Testing

@Suite("When the core ticks, and when it rests", .timeLimit(.minutes(30)))
struct TickTests {
    private static let tick = DeliveryLimits().tick
    private static let rest = DeliveryLimits().restTick

    /// The lease, the tick and the sweep sleep: none of the others wakes within a tick.
    private func isTicking(_ rig: Rig) -> Bool { rig.clock.untilNext.map { $0 <= Self.tick } ?? false }

    /// Lets time pass until nobody wakes within a tick.
    private func rests(_ rig: Rig, at place: SourceLocation = #_sourceLocation) async {
        for _ in 0..<Rig.patience where isTicking(rig) && !Task.isCancelled {
            await rig.pass(Self.tick)
            await Task.yield()
        }
        #expect(!isTicking(rig), sourceLocation: place)
    }

    @Test("It rests while nothing is owed, begins when a push is taken in, and rests when that has ended")
    func rests() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            await rests(rig)
            try await rig.owe([push(1)])
            await rig.clock.sleepers(atLeast: 3)
            #expect(isTicking(rig))
            await rig.pass(.seconds(3))
            #expect(isTicking(rig), "as long as it is owed")
            provider.grant(1)
            await rig.outbox.ended.wait(for: 1)
            await rests(rig)
        }
    }

    @Test("A push that an idle relay takes in is sent at once, and no tick is needed for that")
    func atOnce() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            await rests(rig)
            let before = rig.clock.elapsed
            try await rig.expect([.accepted], of: [push(1)])
            #expect(rig.clock.elapsed == before)
        }
    }

    @Test("A push that only waits for its next attempt keeps the tick going, wherever it waits")
    func retries() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            push.attempt == 0 ? .busy(.seconds(push.address == "t1" ? 2 : 20)) : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            await rests(rig)
            // One sleeps in memory, the other in the store.
            try await rig.expect([.known(.retry), .known(.retry)], of: [push(1), push(2)])
            await rig.clock.sleepers(atLeast: 3)
            #expect(isTicking(rig))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(isTicking(rig))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            await rests(rig)
        }
    }

    @Test("A reply that waits for the push of another process alone makes it tick, up to its deadline")
    func repeated() async throws {
        let depot = Depot()
        try await Rig.run(depot, .of(ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted })) { rig in
            try await rig.owe([push(1)])
            rig.outbox.cut()
        }
        try await Rig.run(depot, .of(ScriptedProvider(Names.fcm) { _ in .accepted })) { rig in
            await rests(rig)
            async let reply = rig.admit([push(1)], within: .milliseconds(500))
            // Until the reply waits, which is when its call has been committed.
            for _ in 0..<Rig.patience where !isTicking(rig) && !Task.isCancelled { await Task.yield() }
            #expect(isTicking(rig))
            #expect(try rig.lane().inMemory == 0)
            await rig.pass(.milliseconds(500))
            let outcomes = try await reply
            #expect(outcomes == [.pending])
            await rests(rig)
        }
    }

    @Test("What another process has left is found by a look, and ticks begin")
    func takenOver() async throws {
        let depot = Depot()
        let silent = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(silent)) { rig in
            try await rig.owe([push(1)])
            rig.outbox.cut()
        }
        depot.clock.advance(by: .seconds(30))
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(provider.addresses == ["t1"])
            await rests(rig)
        }
    }

    @Test("While it rests it still ticks, so that a suspension of the process is noticed")
    func alive() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            await rests(rig)
            let counted = rig.counted.count
            // Its counts are set right as often as before.
            await rig.pass(until: rig.counted, reaches: counted + 1, step: Self.rest)
            #expect(rig.service.membership.roster(of: .relays) != nil)
        }
    }
}
