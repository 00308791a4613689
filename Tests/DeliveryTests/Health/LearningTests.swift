import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Learning an address's environment", .timeLimit(.minutes(30)))
struct LearningTests {
    private func plan(_ production: ScriptedProvider, _ sandbox: ScriptedProvider) -> DeliveryService.Setup {
        .of(production, sandbox, environment: .learn)
    }

    @Test(
        "Refused in production, a new address tries the sandbox in its first attempt, and is remembered",
        arguments: EngineKind.allCases)
    func learns(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            try await rig.expect([.accepted], of: [push(1, bundle: "org.acme", address: "phone")])
            #expect(production.sent.count == 1)
            #expect(sandbox.sent.map(\.id) == production.sent.map(\.id))
            await rig.outbox.ended.wait(for: 1)
            try await rig.expect([.accepted], of: [push(2, bundle: "org.acme", address: "phone")])
            #expect(production.sent.count == 1)
            #expect(sandbox.sent.count == 2)
            await rig.outbox.ended.wait(for: 2)
        }
        let later = ScriptedProvider(Names.sandbox) { _ in .accepted }
        depot.clock.advance(by: .seconds(30))
        try await Rig.run(depot, plan(ScriptedProvider(Names.apns) { _ in .badDeviceToken }, later)) { rig in
            try await rig.expect([.accepted], of: [push(3, bundle: "org.acme", address: "phone")])
            #expect(later.sent.count == 1)
        }
    }

    @Test("An address accepted in production before never tries the sandbox")
    func known() async throws {
        let depot = Depot()
        let production = ScriptedProvider(Names.apns) { push in
            push.address == "phone" && push.pushClass == .normal ? .accepted : .badDeviceToken
        }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            try await rig.expect([.accepted], of: [push(1, bundle: "org.acme", address: "phone")])
            await rig.outbox.ended.wait(for: 1)
            try await rig.expect(
                [.known(.unregistered)], of: [push(2, .urgent, bundle: "org.acme", address: "phone")])
            #expect(sandbox.sent.isEmpty)
        }
    }

    @Test("Nor does one that was parked before it was accepted, and so comes from the store unknown")
    func knownFromStore() async throws {
        let depot = Depot()
        let learned = AwaitedCount()
        let production = ScriptedProvider(Names.apns, slots: 0) { push in
            if push.pushClass == .urgent { return .accepted }
            // The lane may have it back before the store has the other one's acceptance.
            await learned.wait(for: 1)
            return .badDeviceToken
        }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 1 }
        try await Rig.run(depot, plan(production, sandbox), limits: limits) { rig in
            try await rig.owe([push(1, bundle: "org.acme", address: "phone")])
            try await rig.owe([push(2, .urgent, bundle: "org.acme", address: "phone")])
            await rig.outbox.parked.wait(for: 1)
            production.grant(1)
            await production.waitForSent(1)
            await rig.outbox.ended.wait(for: 1)
            learned.add()
            await rig.pass(.milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(production.addresses == ["phone", "phone"])
            #expect(sandbox.sent.isEmpty)
        }
    }

    @Test(
        "A look-up that fails after production's refusal costs neither the push nor its registration",
        arguments: EngineKind.allCases)
    func unknownMeanwhile(_ kind: EngineKind) async throws {
        let registry = Mutex<GatedRegistry?>(nil)
        let production = ScriptedProvider(Names.apns) { _ in
            registry.withLock { $0 }?.fail(.unavailable)
            return .badDeviceToken
        }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(Depot(kind), plan(production, sandbox)) { rig in
            registry.withLock { $0 = rig.registry }
            let key = Names.phone
            let touched = rig.clock.now - .seconds(60)
            try await rig.register(key, touchedAt: touched)
            let alone = push(1, bundle: "org.acme", address: "phone", record: key, touchedAt: touched)
            try await rig.expect([.accepted], of: [alone])
            #expect(sandbox.sent.map(\.id) == production.sent.map(\.id))
            await rig.outbox.ended.wait(for: 1)
            let record = try await rig.store.find([key])[0]
            #expect(record?.state == .live)
            // What the sandbox accepted is remembered.
            rig.registry.fail(nil)
            try await rig.expect([.accepted], of: [push(2, bundle: "org.acme", address: "phone")])
            #expect(production.sent.count == 1)
        }
    }

    @Test(
        "Two pushes to a new address of the sandbox cost no registration, when the second one's refusal comes late",
        arguments: EngineKind.allCases)
    func learnedMeanwhile(_ kind: EngineKind) async throws {
        let late = AwaitedCount()
        let production = ScriptedProvider(Names.apns, slots: 2) { push in
            if push.pushClass != .urgent { await late.wait(for: 1) }
            return .badDeviceToken
        }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(Depot(kind), plan(production, sandbox)) { rig in
            let key = Names.phone
            let touched = rig.clock.now - .seconds(60)
            try await rig.register(key, touchedAt: touched)
            for (number, pushClass) in [(1, PushClass.normal), (2, .urgent)] {
                try await rig.owe([
                    push(
                        number, pushClass, bundle: "org.acme", address: "phone", record: key,
                        touchedAt: touched)
                ])
                await production.waitForSent(number)
            }
            // The second has gone on to the sandbox, and the store knows where the address belongs.
            await rig.outbox.ended.wait(for: 1)
            late.add()
            await rig.outbox.ended.wait(for: 2)
            #expect(sandbox.sent.count == 2)
            #expect(try await rig.store.find([key])[0]?.state == .live)
        }
    }

    @Test("A push that names its environment is tried there alone, and teaches nothing")
    func named() async throws {
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { push in
            push.address == "dead" ? .badDeviceToken : .accepted
        }
        try await Rig.run(Depot(), plan(production, sandbox)) { rig in
            func named(_ number: Int, _ environment: Environment, _ address: String) -> Push {
                push(number, bundle: "org.acme", environment: environment, address: address)
            }
            try await rig.expect([.accepted], of: [named(1, .sandbox, "phone")])
            #expect(production.sent.isEmpty && sandbox.sent.count == 1)
            try await rig.expect([.known(.unregistered)], of: [named(2, .production, "phone")])
            #expect(production.sent.count == 1 && sandbox.sent.count == 1)
            try await rig.expect([.known(.unregistered)], of: [named(3, .sandbox, "dead")])
            #expect(production.sent.count == 1 && sandbox.sent.count == 2)
            await rig.outbox.ended.wait(for: 3)
            let key = Environments.key(app: Names.acme, address: Secret("phone".utf8))
            #expect(try await rig.store.find([key])[0] == nil)
            // One that names none begins where everybody begins.
            try await rig.expect([.accepted], of: [push(4, bundle: "org.acme", address: "phone")])
            #expect(production.sent.count == 2)
        }
    }

    @Test("What is known of an address stands, whatever a push that names its environment hears")
    func namedBeside() async throws {
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(Depot(), plan(production, sandbox)) { rig in
            try await rig.expect([.accepted], of: [push(1, bundle: "org.acme", address: "phone")])
            await rig.outbox.ended.wait(for: 1)
            try await rig.expect(
                [.known(.unregistered)],
                of: [push(2, bundle: "org.acme", environment: .production, address: "phone")])
            await rig.outbox.ended.wait(for: 2)
            try await rig.expect([.accepted], of: [push(3, bundle: "org.acme", address: "phone")])
            #expect(production.sent.count == 2, "the sandbox was asked at once")
        }
    }

    @Test("It still does after a restart", arguments: EngineKind.allCases)
    func namedInStore(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let idle = ScriptedProvider(Names.apns, slots: 0) { _ in .accepted }
        try await Rig.run(depot, plan(idle, ScriptedProvider(Names.sandbox) { _ in .accepted })) { rig in
            try await rig.owe([push(1, bundle: "org.acme", environment: .production, address: "phone")])
            await idle.waitForReservation()
        }
        depot.clock.advance(by: .seconds(30))
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .accepted }
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(production.sent.count == 1 && sandbox.sent.isEmpty)
        }
    }

    @Test("An environment that the app is not served in is refused like an app that nobody serves")
    func namedUnserved() async throws {
        let production = ScriptedProvider(Names.apns) { _ in .accepted }
        try await Rig.run(Depot(), .of(production)) { rig in
            try await rig.expect(
                [.dropped, .accepted],
                of: [
                    push(1, bundle: "org.acme", environment: .sandbox),
                    push(2, bundle: "org.acme", environment: .production)
                ])
            #expect(production.addresses == ["t2"])
            try await rig.expect([.dropped], of: [push(3, app: Names.other)])
        }
    }

    @Test("Refused by both, an address is unregistered")
    func bothRefuse() async throws {
        let depot = Depot()
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .badDeviceToken }
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            let key = Names.phone
            let touched = depot.clock.now - .seconds(60)
            try await rig.register(key, touchedAt: touched)
            try await rig.expect(
                [.known(.unregistered)], of: [push(1, bundle: "org.acme", record: key, touchedAt: touched)])
            #expect(production.sent.count == 1)
            #expect(sandbox.sent.count == 1)
            let record = try await rig.store.find([key])[0]
            #expect(record?.state != .live)
        }
    }

    @Test("An accepted push from production leaves no trace of the sandbox, and a retry there stays there")
    func retryInSandbox() async throws {
        let depot = Depot()
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { push in
            push.attempt == 0 ? .busy(.seconds(30)) : .accepted
        }
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1, bundle: "org.acme")])
            await rig.outbox.parked.wait(for: 1)
            await rig.pass(.seconds(33), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(production.sent.count == 1)
            #expect(sandbox.sent.map(\.attempt) == [0, 1])
        }
    }

    @Test("Parked on its way to a sandbox lane that is full, a push goes on there")
    func parkedBetween() async throws {
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox, slots: 0) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 2 }
        try await Rig.run(Depot(), plan(production, sandbox), limits: limits) { rig in
            try await rig.owe((1...2).map { push($0, bundle: "org.acme") })
            await production.waitForSent(2)
            try await rig.owe([push(3, bundle: "org.acme")])
            await rig.outbox.parked.wait(for: 1)
            sandbox.grant(1)
            await rig.pass(.seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(production.sent.count == 3)
            #expect(sandbox.sent.count == 3)
        }
    }
}
