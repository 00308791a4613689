import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Whom a fault of the target blames", .timeLimit(.minutes(30)))
struct BlameTests {
    private static let accepted = Answer(.accepted, .ok, sentAt: Answer.sent)
    private static let bad = Answer(.unregistered(since: nil), .senderIdMismatch, sentAt: Answer.sent)

    private static func setup(
        _ provider: ScriptedProvider, _ identity: String, stamp: Int? = nil
    ) -> DeliveryService.Setup {
        var setup = DeliveryService.Setup.of(provider)
        setup.lanes = [
            DeliveryService.LaneSpec(
                provider, credential: Credential(), stamp: stamp ?? identity.hashValue,
                identity: Secret(identity.utf8))
        ]
        return setup
    }

    /// Pushes to fifteen phones, one after the other.
    private func outcomes(_ rig: Rig, from first: Int) async throws -> [FirstOutcome] {
        var outcomes: [FirstOutcome] = []
        for number in first..<first + 15 {
            outcomes += try await rig.admit([push(number, address: "phone \(number % 15)")])
        }
        return outcomes
    }

    private static let spared = [FirstOutcome](repeating: .known(.misconfigured), count: 15)

    @Test("Nobody, before something was accepted, and the log says so once", arguments: EngineKind.allCases)
    func unproven(_ kind: EngineKind) async throws {
        let isRight = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { push in
            isRight.count > 0 && push.address != "phone 7" ? Self.accepted : Self.bad
        }
        try await Rig.run(Depot(kind), Self.setup(provider, "one")) { rig in
            let before = try await outcomes(rig, from: 0)
            #expect(before == Self.spared)
            #expect(rig.journal.text.count { $0.contains("registrations spared") } == 1)
            isRight.add()
            let after = try await outcomes(rig, from: 15)
            #expect(after.count { $0 == .accepted } == 14)
            #expect(after[7] == .known(.unregistered))
        }
    }

    @Test(
        "Nobody after a reload or a restart with another credential; after one with the same, as before",
        arguments: EngineKind.allCases, [true, false])
    func changed(_ kind: EngineKind, _ byReload: Bool) async throws {
        let depot = Depot(kind)
        let isWrong = AwaitedCount()
        let first = ScriptedProvider(Names.fcm) { _ in isWrong.count > 0 ? Self.bad : Self.accepted }
        let second = ScriptedProvider(Names.fcm) { _ in Self.bad }
        try await Rig.run(depot, Self.setup(first, "one")) { rig in
            let before = try await outcomes(rig, from: 0)
            #expect(before.allSatisfy { $0 == .accepted })
            await rig.outbox.ended.wait(for: 15)
            guard byReload else { return }
            rig.service.adopt(Self.setup(second, "two"))
            let after = try await outcomes(rig, from: 15)
            #expect(after == Self.spared)
        }
        if byReload { return }
        try await Rig.run(depot, Self.setup(second, "two")) { rig in
            let after = try await outcomes(rig, from: 30)
            #expect(after == Self.spared)
        }
        isWrong.add()
        try await Rig.run(depot, Self.setup(first, "one")) { rig in
            let after = try await outcomes(rig, from: 45)
            #expect(after.count { $0 == .known(.unregistered) } == 1)
        }
    }

    @Test("Nobody where the store cannot be asked what was accepted before, which the log says")
    func unasked() async throws {
        let first = ScriptedProvider(Names.fcm) { _ in Self.accepted }
        let second = ScriptedProvider(Names.fcm) { _ in Self.bad }
        try await Rig.run(Depot(), Self.setup(first, "one", stamp: 1)) { rig in
            try await rig.expect([.accepted], of: [push(0)])
            await rig.outbox.ended.wait(for: 1)
            rig.registry.fail(.unavailable)
            rig.service.adopt(Self.setup(second, "one", stamp: 2))
            await rig.journal.until(contain: "last acceptance not read")
            rig.registry.fail(nil)
            let after = try await outcomes(rig, from: 15)
            #expect(after == Self.spared)
        }
    }

    @Test("A token that the service knew to be dead ends its registration at any time")
    func known() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in
            Answer(.unregistered(since: nil), .unregisteredFCM, sentAt: Answer.sent)
        }
        try await Rig.run(Depot(), Self.setup(provider, "one")) { rig in
            let phone = try await FeedbackTests.register(rig)
            try await rig.expect(
                [.known(.unregistered)], of: [try FeedbackTests.pushed(1, of: phone, rig)])
            #expect(try await FeedbackTests.state(rig) == .expired(at: rig.clock.now))
            #expect(!rig.journal.contains("registrations spared"))
        }
    }

    @Test(
        "By share: a quarter of those that were accepted, and one in any case", arguments: [0, 1, 4, 15, 200])
    func share(_ phones: Int) {
        var suspicion = Suspicion(isProven: true)
        for phone in 0..<phones { suspicion.note(Self.accepted, address: phone) }
        var blamed = 0
        for phone in 0..<100 {
            suspicion.note(Self.bad, address: 1_000 + phone)
            if suspicion.doubt == nil { blamed += 1 }
        }
        #expect(blamed == max(1, min(phones, 80) / 4))
        #expect(suspicion.news() == .share && suspicion.news() == nil)
        suspicion.note(Self.accepted, address: 1)
        suspicion.note(Self.bad, address: 2)
        #expect(suspicion.doubt == nil)
    }
}
