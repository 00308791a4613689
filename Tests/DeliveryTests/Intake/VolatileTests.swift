import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Volatile custody", .timeLimit(.minutes(30)))
struct VolatileTests {
    @Test(
        "A volatile push is sent, and the store's engine hears nothing of it, whatever the service answers",
        arguments: [Answer.accepted, .rejected, .badTopic, .badDeviceToken, .gone(at: .distantPast)])
    func nothingInTheStore(_ answer: Answer) async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 2) { _ in answer }
        try await Rig.run(depot, .of(provider)) { rig in
            #expect(rig.admitVolatile(1...3) == VolatileAdmission(owed: 3))
            await rig.passUntilNothingOwed()
            #expect(Set(provider.addresses) == ["t1", "t2", "t3"])
            #expect(provider.sent.allSatisfy { $0.custody == .volatile && $0.row == 0 })
            #expect(depot.asked == [])
            try await rig.expectRows(0)
        }
        #expect(depot.asked == [])
    }

    @Test("A durable push leaves its trace in the engine, so the spy can see")
    func spySees() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.expect([.accepted], of: [push(1)])
            await rig.outbox.ended.wait(for: 1)
            #expect(depot.asked == ["accept 1", "settle 1"])
        }
    }

    @Test("Retries wait in memory, near ones and far ones", arguments: [Duration?.none, .seconds(60)])
    func retries(_ asked: Duration?) async throws {
        let depot = Depot()
        let begin = depot.clock.now
        let first = Once()
        let provider = ScriptedProvider(Names.fcm) { _ in first.take() ? .busy(asked) : .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.admitVolatile([1])
            await provider.waitForSent(1)
            await rig.passUntilNothingOwed()
            #expect(provider.addresses == ["t1", "t1"])
            #expect(Set(provider.sent.map(\.id)).count == 1)
            #expect(depot.clock.now.since(begin) >= asked ?? .zero)
            #expect(depot.asked == [])
        }
    }

    @Test("After its custody it is not sent, and counted")
    func custodyEnds() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.admitVolatile(1...2, custody: .seconds(60))
            await provider.waitForReservation()
            await rig.pass(.seconds(61), step: .seconds(1))
            await rig.passUntilNothingOwed()
            #expect(rig.custodyEnded.count == 2)
            provider.grant(1)
            await rig.pass(.milliseconds(300))
            #expect(provider.sent.isEmpty)
            #expect(depot.asked == [])
        }
    }

    @Test("A provider that is not direct can lease none; a durable push goes through it")
    func forwarding() async throws {
        let inner = ScriptedProvider(Names.fcm) { _ in .accepted }
        let sample = DeliveryService.Setup.of(inner)
        let plan = DeliveryService.Setup(
            apps: sample.apps,
            lanes: [DeliveryService.LaneSpec(ForwardingProvider(inner: inner), credential: Credential())],
            overrides: [:])
        try await Rig.run(Depot(), plan) { rig in
            #expect(rig.admitVolatile(1...2) == VolatileAdmission(withoutLane: 2))
            #expect(rig.service.volatileOwed == 0)
            try await rig.expect([.accepted], of: [push(3)])
            #expect(inner.addresses == ["t3"])
        }
    }

    @Test("A push that no app serves is dropped, and its inbound counts as taken")
    func noApp() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let admission = rig.admitVolatile([1], bundle: "org.unknown")
            #expect(admission == VolatileAdmission(withoutLane: 1))
            #expect(!admission.isUntaken)
        }
    }

    @Test("Beyond the bound pushes are dropped; when none has room the role may take its inbound again")
    func bound() async throws {
        let depot = Depot()
        var limits = DeliveryLimits()
        limits.lanePushes = 4
        limits.volatilePushes = 10
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            #expect(rig.admitVolatile(1...7) == VolatileAdmission(owed: 7))
            let some = rig.admitVolatile(8...12)
            #expect(some == VolatileAdmission(owed: 3, withoutRoom: 2) && !some.isUntaken)
            let none = rig.admitVolatile([13])
            #expect(none == VolatileAdmission(withoutRoom: 1) && none.isUntaken)
            // More than the lane's own queue holds waits on the shelf, in memory.
            let lane = try rig.lane()
            #expect(lane.inMemory == 10)
            #expect(lane.parked == 0)
            provider.grant(2)
            await rig.passUntilNothingOwed()
            #expect(Set(provider.addresses) == Set((1...10).map { "t\($0)" }))
            #expect(provider.sent.count == 10)
            #expect(depot.asked == [])
        }
    }

    @Test("Durable pushes are parked, volatile ones are not, and all are sent")
    func bothKinds() async throws {
        let depot = Depot()
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            rig.admitVolatile(101...120)
            try await rig.owe((1...20).map { push($0) })
            provider.grant(2)
            await rig.pass(until: rig.outbox.ended, reaches: 20)
            await rig.passUntilNothingOwed()
            #expect(provider.sent.count == 40)
            #expect(Set(provider.addresses).count == 40)
            let accepted = depot.asked.filter { $0.hasPrefix("accept") }
            #expect(accepted == ["accept 20"])
            try await rig.expectRows(0)
        }
    }

    @Test("A volatile backlog delays nobody else's first push: each instance has its turn")
    func turns() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.admitVolatile(101...200)
            await provider.waitForReservation()
            try await rig.owe([push(1)])
            provider.grant(1)
            await rig.outbox.ended.wait(for: 1)
            let place = try #require(provider.addresses.firstIndex(of: "t1"))
            #expect(place <= 2)
        }
    }

    @Test("Without a lease durable pushes go back to the store, and volatile ones are sent all the same")
    func withoutLease() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.outbox.set { $0.renew = .unavailable }
            await rig.pass(.milliseconds(10_100))
            try await rig.owe([push(1)])
            rig.admitVolatile([2])
            await rig.passUntilNothingOwed()
            #expect(provider.addresses == ["t2"])
            await rig.outbox.parked.wait(for: 1)
            try await rig.expectRows(1)
        }
    }

    @Test("An environment is learned in memory: no record of the address is written or looked for")
    func learning() async throws {
        let depot = Depot()
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(depot, .of(production, sandbox, environment: .learn)) { rig in
            rig.admitVolatile([1], bundle: "org.acme")
            await rig.passUntilNothingOwed()
            #expect(production.addresses == ["t1"])
            #expect(sandbox.addresses == ["t1"])
            #expect(production.sent[0].id == sandbox.sent[0].id)
            rig.admitVolatile([1], bundle: "org.acme")
            await rig.passUntilNothingOwed()
            #expect(production.sent.count == 1)
            #expect(sandbox.sent.count == 2)
            #expect(depot.asked == [])
        }
    }

    @Test("Made-up addresses halt no lane")
    func breaker() async throws {
        let provider = ScriptedProvider(Names.apns) { push in
            push.custody == .volatile ? .badDeviceToken : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.admitVolatile(1...150, bundle: "org.acme")
            await rig.passUntilNothingOwed()
            #expect(provider.sent.count == 150)
            let lane = try rig.lane(Names.apns)
            #expect(!lane.isHalted)
            try await rig.expect([.accepted], of: [push(200, bundle: "org.acme")])
        }
    }

    @Test("A credential's fault halts the lane, and volatile pushes wait for it in memory")
    func halted() async throws {
        let depot = Depot()
        let works = Mutex(false)
        let provider = ScriptedProvider(Names.fcm) { _ in works.withLock(\.self) ? .accepted : .badCredential
        }
        try await Rig.run(depot, .of(provider), limits: .haltsAtOnce) { rig in
            rig.admitVolatile(1...3)
            await provider.waitForSent(1)
            await rig.pass(.seconds(2))
            #expect(provider.sent.count == 1)
            #expect(rig.service.volatileOwed == 3)
            works.withLock { $0 = true }
            await rig.pass(.seconds(61), step: .seconds(1))
            await rig.passUntilNothingOwed()
            #expect(Set(provider.addresses) == ["t1", "t2", "t3"])
            #expect(depot.asked == [])
        }
    }
}

@Suite("Volatile custody and stops", .timeLimit(.minutes(30)))
struct VolatileStopTests {
    @Test("A graceful stop sends what was admitted before it ends; durable pushes go back to the store")
    func drains() async throws {
        let depot = Depot()
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            rig.admitVolatile(101...120)
            try await rig.owe([push(1), push(2)])
            await provider.waitForReservation()
            await rig.stop()
            await rig.outbox.parked.wait(for: 2)
            provider.grant(1)
            await provider.waitForSent(20)
        }
        #expect(Set(provider.addresses) == Set((101...120).map { "t\($0)" }))
        try await expectLeft(2, in: depot)
    }

    @Test("A push whose next attempt is further off than the drain is tried once more at the stop")
    func lastAttempt() async throws {
        let first = Once()
        let provider = ScriptedProvider(Names.fcm) { _ in first.take() ? .busy(.seconds(300)) : .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.admitVolatile([1])
            await provider.waitForSent(1)
            await rig.stop()
            await provider.waitForSent(2)
        }
        #expect(provider.addresses == ["t1", "t1"])
    }

    @Test("A retry that comes due while the stop drains is made")
    func retryWhileDraining() async throws {
        let depot = Depot()
        let gate = AwaitedCount()
        let first = Once()
        let provider = ScriptedProvider(Names.fcm) { _ in
            if first.take() { return .busy() }
            await gate.wait(for: 1)
            return .accepted
        }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.admitVolatile([1])
            await provider.waitForSent(1)
            await rig.stop()
            await rig.pass(.seconds(2))
            await rig.pass(untilSent: 2, by: provider)
            // Until now the core cannot have ended.
            gate.add()
        }
        #expect(provider.addresses == ["t1", "t1"])
    }

    @Test("A service that never gives a stream cannot hold up a stop for longer than the drain")
    func bounded() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.admitVolatile(1...5)
            await provider.waitForReservation()
            await rig.stop()
            await rig.pass(.seconds(9))
            #expect(rig.service.volatileOwed == 5)
            // From here on the core may end, and its sleepers with it.
            while rig.service.volatileOwed > 0, !Task.isCancelled {
                rig.clock.advance(by: .milliseconds(100))
                for _ in 0..<50 { await Task.yield() }
            }
        }
        #expect(provider.sent.isEmpty)
        #expect(depot.asked == [])
    }

    @Test("A halted lane does not wait at a stop")
    func halted() async throws {
        let first = Once()
        let halted = Bell()
        let provider = ScriptedProvider(Names.fcm) { _ in
            // The slot is free before the lane has read the answer: one more may be under way by then.
            if !first.take() { await halted.waitThroughCancellation() }
            return .badCredential
        }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            rig.admitVolatile(1...5)
            await provider.waitForSent(1)
            try await asked(for: "a lane that halts") { try rig.lane().isHalted }
            halted.ring()
            await rig.stop()
            try await asked(for: "a lane that owes nothing") { rig.service.volatileOwed == 0 }
        }
        #expect(provider.sent.count <= 2)
    }

    @Test("A lane that a reload replaces sends its own volatile pushes, retries included")
    func reload() async throws {
        let first = Once()
        let old = ScriptedProvider(Names.fcm) { _ in first.take() ? .busy() : .accepted }
        let new = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(old)) { rig in
            rig.admitVolatile([1])
            await old.waitForSent(1)
            rig.service.adopt(.of([(new, Credential())], stamp: 1))
            rig.admitVolatile([2])
            await new.waitForSent(1)
            await rig.passUntilNothingOwed()
            #expect(old.addresses == ["t1", "t1"])
            #expect(new.addresses == ["t2"])
        }
    }

    /// How many pushes the next process finds.
    private func expectLeft(_ count: Int, in depot: Depot) async throws {
        let store = try await depot.open(depot.world)
        let rows = try await store.load().rows
        #expect(rows == count)
    }
}
