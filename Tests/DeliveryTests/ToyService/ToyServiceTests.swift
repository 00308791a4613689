import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

/// A push service that the relay does not have goes the whole way, by its own file alone.
@Suite("A push service of the tests' own", .timeLimit(.minutes(30)))
struct ToyServiceTests {
    private static let near = LaneName(app: Names.acme, service: .pigeon, environment: .sandbox)
    private static let far = LaneName(app: Names.acme, service: .pigeon, environment: .production)

    private static func pigeon(_ number: Int, loft: String? = nil, record: RecordKey? = nil) -> Push {
        Push(
            message: ProviderMessage(
                PigeonMessage(
                    loft: Secret((loft ?? "loft \(number)").utf8), note: Secret("note \(number)".utf8),
                    seals: UInt8(number))),
            pushClass: .normal, origin: Secret("one".utf8), record: record, touchedAt: .distantPast,
            custodyEnds: UnixTime(seconds: 1_801_000_000), repeatIdentity: Secret("\(number)".utf8))
    }

    /// Pigeons beside the services that every relay has.
    private static func plan(_ providers: ScriptedProvider...) -> DeliveryService.Setup {
        let app = AppDirectory.App(
            name: Names.acme,
            outlets: [APNsOutlet(bundles: .any), FCMOutlet(isDefault: true), PigeonOutlet()])
        let credential = Credential()
        return DeliveryService.Setup(
            apps: AppDirectory([AppDirectory.Instance(name: Names.instance, apps: [app])]),
            lanes: providers.map { DeliveryService.LaneSpec($0, credential: credential) }, overrides: [:])
    }

    /// What arrived, in words.
    private func letters(_ provider: ScriptedProvider) -> Set<String> {
        Set(
            provider.sent.map { push in
                guard let message = push.message.value as? PigeonMessage else { return "no pigeon" }
                return message.note.reveal { String(decoding: $0, as: UTF8.self) } + "/\(message.seals)"
            })
    }

    @Test("From intake to outcome, beside the others", arguments: EngineKind.allCases)
    func whole(_ kind: EngineKind) async throws {
        let pigeons = ScriptedProvider(Self.near) { _ in .accepted }
        let phones = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(kind), Self.plan(pigeons, phones), services: .withPigeons) { rig in
            try await rig.expect([.accepted, .accepted], of: [Self.pigeon(1), push(2)])
            #expect(letters(pigeons) == ["note 1/1"] && pigeons.addresses == ["loft 1"])
            #expect(phones.addresses == ["t2"])
            await rig.outbox.ended.wait(for: 2)
            try await rig.expectRows(0)
        }
    }

    @Test(
        "Owed over restarts, also of a relay that does not know the service",
        arguments: EngineKind.allCases)
    func restarts(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let idle = ScriptedProvider(Self.near, slots: 0) { _ in .accepted }
        try await Rig.run(depot, Self.plan(idle), services: .withPigeons) { rig in
            try await rig.owe((1...3).map { Self.pigeon($0) })
        }
        // One that has neither the lane nor the list leaves them where they are, and says so.
        depot.clock.advance(by: .seconds(30))
        try await Rig.run(depot, .of(ScriptedProvider(Names.fcm) { _ in .accepted })) { rig in
            try await rig.expect([.accepted], of: [push(4)])
            await rig.outbox.ended.wait(for: 1)
            await rig.journal.until(contain: "owed pushes without a lane")
            try await rig.expectRows(3)
        }
        depot.clock.advance(by: .seconds(30))
        let pigeons = ScriptedProvider(Self.near) { _ in .accepted }
        try await Rig.run(depot, Self.plan(pigeons), services: .withPigeons) { rig in
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(letters(pigeons) == ["note 1/1", "note 2/2", "note 3/3"])
            try await rig.expectRows(0)
        }
    }

    @Test("Read without the list, it does not open, is set aside and ends nothing else")
    func unlisted() async throws {
        let depot = Depot()
        try await Rig.run(
            depot, Self.plan(ScriptedProvider(Self.near, slots: 0) { _ in .accepted }), services: .withPigeons
        ) { rig in
            try await rig.owe([Self.pigeon(1)])
        }
        depot.clock.advance(by: .seconds(30))
        let pigeons = ScriptedProvider(Self.near) { _ in .accepted }
        let phones = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(depot, Self.plan(pigeons, phones)) { rig in
            try await rig.expect([.accepted], of: [push(2)])
            await rig.outbox.ended.wait(for: 1)
            try await asked(for: "a push that is set aside") {
                await rig.pass(.milliseconds(100))
                return try await rig.store.load().aside == 1
            }
            #expect(pigeons.sent.isEmpty)
            try await rig.expect([.accepted], of: [push(3)])
        }
    }

    @Test("Where an address belongs is found out and remembered, in the order that the service names")
    func learned() async throws {
        let near = ScriptedProvider(Self.near) { _ in Answer(.rejected, .otherCoast, sentAt: Answer.sent) }
        let far = ScriptedProvider(Self.far) { _ in .accepted }
        try await Rig.run(Depot(), Self.plan(near, far), services: .withPigeons) { rig in
            try await rig.expect([.accepted], of: [Self.pigeon(1, loft: "tower")])
            #expect(near.sent.map(\.id) == far.sent.map(\.id) && near.sent.count == 1)
            await rig.outbox.ended.wait(for: 1)
            try await rig.expect([.accepted], of: [Self.pigeon(2, loft: "tower")])
            #expect(near.sent.count == 1 && far.sent.count == 2)
        }
    }

    @Test("A word by which it asks for time slows its lane, and no other")
    func slowed() async throws {
        let pigeons = ScriptedProvider(Self.near) { _ in
            Answer(.retry(after: nil), .storm, sentAt: Answer.sent)
        }
        let phones = ScriptedProvider(Names.fcm) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.throttleRefusals = 3 }
        try await Rig.run(
            Depot(), Self.plan(pigeons, phones), limits: limits, services: .withPigeons
        ) { rig in
            try await rig.owe((1...5).map { Self.pigeon($0) })
            await pigeons.waitForSent(3)
            await rig.journal.until(contain: "lane slowed")
            try await rig.expect([.accepted], of: [push(6)])
            let slowed = rig.journal.text.filter { $0.contains("lane slowed") }
            #expect(slowed.count == 1 && slowed[0].contains(Self.near.description), "\(slowed)")
        }
    }

    @Test("A word that blames the address counts as a target fault, and its outcome ends the registration")
    func dead() async throws {
        #expect(
            Breaker.isTargetFault(Answer(.unregistered(since: nil), .noSuchLoft, sentAt: Answer.sent)))
        #expect(!Breaker.isTargetFault(Answer(.retry(after: nil), .storm, sentAt: Answer.sent)))
        let pigeons = ScriptedProvider(Self.near) { _ in
            Answer(.unregistered(since: nil), .noSuchLoft, sentAt: UnixTime(seconds: 1_800_000_100))
        }
        try await Rig.run(Depot(), Self.plan(pigeons), services: .withPigeons) { rig in
            let key = RecordKey(Space(Names.instance, "device"), Secret("tower".utf8))
            let touched = UnixTime.distantPast
            try await rig.register(key, touchedAt: touched)
            try await rig.expect([.known(.unregistered)], of: [Self.pigeon(1, record: key)])
            let record = try await rig.store.find([key])[0]
            #expect(record?.state != .live)
        }
    }
}
