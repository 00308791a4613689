import AtRest
import Delivery
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization
import Testing

@Suite("Reloads", .timeLimit(.minutes(30)))
struct DeliveryReloadTests {
    @Test("A lane that is replaced loses no push and doubles none", arguments: EngineKind.allCases)
    func replaced(_ kind: EngineKind) async throws {
        let answers = AwaitedCount()
        let old = ScriptedProvider(Names.fcm, slots: 3) { push in
            await answers.wait(for: 1)
            return push.address == "t1" ? .busy(.seconds(1)) : .accepted
        }
        let new = ScriptedProvider(Names.fcm) { _ in .accepted }
        let credential = Credential()
        try await Rig.run(Depot(kind), .of([(old, credential)])) { rig in
            try await rig.owe((1...20).map { push($0) })
            await old.waitForSent(3)
            rig.service.adopt(.of([(new, credential)], stamp: 1))
            await rig.outbox.parked.wait(for: 17)
            // The new lane does not wait for the old one's last answers.
            await rig.pass(.milliseconds(300))
            await rig.pass(until: rig.outbox.ended, reaches: 17)
            answers.add()
            await rig.outbox.parked.wait(for: 18)
            await rig.pass(.seconds(3))
            await rig.pass(until: rig.outbox.ended, reaches: 20)
            try await rig.expectRows(0)
            #expect(old.sent.count == 3)
            #expect(new.sent.count == 18)
            #expect(new.sent.last?.attempt == 1)
        }
    }

    @Test("A lane that takes a halted one's place is not halted, which proves nothing to operators")
    func halted() async throws {
        let answers = AwaitedCount()
        let old = ScriptedProvider(Names.fcm, slots: 2) { push in
            if push.address == "t2" { await answers.wait(for: 1) }
            return .badCredential
        }
        let new = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of([(old, Credential())]), limits: .haltsAtOnce) { rig in
            try await rig.owe([push(2)])
            await old.waitForSent(1)
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            rig.service.adopt(.of([(new, Credential())], stamp: 1))
            try await rig.expect([.accepted], of: [push(3)])
            answers.add()
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(
                rig.events.text == ["acme/fcm/production halted credential", "acme/fcm/production loosened"])
        }
    }

    @Test("A lane named again with the same stamp keeps running")
    func kept() async throws {
        let old = ScriptedProvider(Names.fcm) { _ in .accepted }
        let new = ScriptedProvider(Names.fcm) { _ in .accepted }
        let credential = Credential()
        try await Rig.run(Depot(), .of([(old, credential)])) { rig in
            rig.service.adopt(.of([(new, credential)]))
            try await rig.expect([.accepted], of: [push(1)])
            #expect(old.sent.count == 1)
            #expect(new.sent.isEmpty)
        }
    }

    @Test("Reloads in the midst of traffic lose no push and double none")
    func underLoad() async throws {
        let credential = Credential()
        let sent = Trace()
        @Sendable func provider() -> ScriptedProvider {
            ScriptedProvider(Names.fcm, slots: 4) { push in
                sent.add(push.address)
                return .accepted
            }
        }
        try await Rig.run(Depot(), .of([(provider(), credential)])) { rig in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 0..<4 {
                    group.addTask {
                        for number in 0..<100 {
                            try await rig.owe([push(caller * 1_000 + number, origin: "o\(caller)")])
                        }
                    }
                }
                for stamp in 1...20 {
                    rig.service.adopt(.of([(provider(), credential)], stamp: stamp))
                    await Task.yield()
                }
                try await group.waitForAll()
            }
            // What came between two lanes is found by the store's own count.
            await rig.pass(.seconds(12))
            await rig.pass(until: rig.outbox.ended, reaches: 400)
            try await rig.expectRows(0)
        }
        #expect(sent.text.count == 400)
        #expect(Set(sent.text).count == 400)
    }

    @Test("A reload in the moment of a stop leaves no lane that nobody stops")
    func besideStop() async throws {
        let depot = Depot()
        let credential = Credential()
        let reload = Mutex(Hook())
        var world = depot.world
        world.instant = { [clock = depot.clock] in
            // A lane that is being stopped asks for the time.
            reload.withLock { hook in
                defer { hook.call = nil }
                return hook.call
            }?()
            return clock.instant
        }
        let store = try await depot.open(world)
        let service = DeliveryService(
            outbox: store, registry: store,
            setup: .of([(ScriptedProvider(Names.fcm) { _ in .accepted }, credential)]), world: world,
            journal: LogSpy().journal)
        let group = ServiceGroup(
            services: [service], gracefulShutdownSignals: [], logger: silentLogger)
        let hasEnded = AwaitedCount()
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                try await group.run()
                hasEnded.add()
            }
            await depot.clock.sleepers(atLeast: 3)
            let late = ScriptedProvider(Names.fcm) { _ in .accepted }
            reload.withLock { $0.call = { service.adopt(.of([(late, credential)], stamp: 1)) } }
            await group.triggerGracefulShutdown()
            await hasEnded.wait(for: 1)
            #expect(hasEnded.count == 1, "a lane was left running")
            tasks.cancelAll()
            try await tasks.waitForAll()
        }
    }

    @Test("A removed lane's pushes wait in the store until there is a lane again")
    func removed() async throws {
        let old = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let credential = Credential()
        try await Rig.run(Depot(), .of([(old, credential)])) { rig in
            try await rig.owe((1...5).map { push($0) })
            rig.service.adopt(.of([]))
            await rig.outbox.parked.wait(for: 5)
            try await rig.expect([.dropped], of: [push(6)])
            await rig.pass(.seconds(70), step: .seconds(1))
            try await rig.expectRows(5)
            let new = ScriptedProvider(Names.fcm) { _ in .accepted }
            rig.service.adopt(.of([(new, credential)]))
            await rig.pass(.seconds(6))
            await rig.pass(until: rig.outbox.ended, reaches: 5)
            #expect(Set(new.addresses) == ["t1", "t2", "t3", "t4", "t5"])
        }
    }
}
