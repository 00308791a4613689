import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("What is ended is over", .timeLimit(.minutes(30)))
struct EndedTests {
    /// How a registration ends, or becomes another's.
    enum End: CaseIterable, Sendable {
        case deleted, expired, tombstone, readdressed, forgotten

        func make(_ rig: Rig) async throws {
            let key = FeedbackTests.key
            switch self {
            case .deleted: _ = try await rig.store.apply([.delete(key, if: .any)])
            case .expired: _ = try await rig.store.apply([.expire(key, at: rig.clock.now, if: .any)])
            case .tombstone:
                let gone = Record(key: key, state: .tombstone, touchedAt: rig.clock.now, body: Secret([]))
                _ = try await rig.store.apply([.put(gone, if: .any)])
            case .readdressed: try await FeedbackTests.register(rig, at: "another")
            case .forgotten: _ = try await rig.store.forget(owner: FeedbackTests.owner, limit: 10)
            }
        }
    }

    @Test(
        "A push that waits for another attempt is not sent once its registration has ended",
        arguments: EngineKind.allCases, End.allCases)
    func retried(_ kind: EngineKind, _ end: End) async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "one" ? .busy(.seconds(2)) : .accepted
        }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let record = try await FeedbackTests.register(rig)
            try await rig.expect([.known(.retry)], of: [try FeedbackTests.pushed(1, of: record, rig)])
            try await end.make(rig)
            try await rig.expectRows(0)
            await rig.pass(.seconds(5))
            try await rig.expect([.accepted], of: [push(9)])
            #expect(provider.addresses == ["one", "t9"])
        }
    }

    @Test(
        "What a halted lane holds in memory, and what is parked, goes with its registration",
        arguments: EngineKind.allCases, End.allCases)
    func held(_ kind: EngineKind, _ end: End) async throws {
        let isBack = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { _ in isBack.count > 0 ? .accepted : .badCredential }
        var limits = DeliveryLimits()
        limits.lanePushes = 2
        // No probe leaves before the end: it may be any push that is owed.
        limits.probeFirst = .seconds(60)
        try await Rig.run(Depot(kind), .of(provider), limits: limits) { rig in
            // Halted by three such answers in a row: what comes now waits.
            try await rig.expect([.known(.retry)], of: [push(9)])
            await rig.pass(.seconds(5))
            await rig.pass(untilSent: 3, by: provider)
            try await asked(for: "a lane that halts") { try rig.lane(Names.fcm).isHalted }
            let record = try await FeedbackTests.register(rig)
            for number in 1...4 { try await rig.owe([try FeedbackTests.pushed(number, of: record, rig)]) }
            try await end.make(rig)
            try await rig.expectRows(1)
            #expect(rig.counts.text.contains("replaced Ok"), "those in memory are counted")
            isBack.add()
            await rig.pass(until: rig.outbox.ended, reaches: 1, step: .seconds(1))
            await rig.pass(.seconds(65), step: .seconds(1))
            #expect(Set(provider.addresses) == ["t9"])
        }
    }

    @Test(
        "A push under way when its registration ends is not sent again, whatever comes of it",
        arguments: EngineKind.allCases, [Answer.busy(), .notReached, .silence, .badCredential])
    func underWay(_ kind: EngineKind, _ answer: Answer) async throws {
        let isOver = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { push in
            guard push.address == "one" else { return .accepted }
            await isOver.wait(for: 1)
            return answer
        }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let record = try await FeedbackTests.register(rig)
            async let told = rig.admit([try FeedbackTests.pushed(1, of: record, rig)])
            await provider.waitForSent(1)
            try await End.deleted.make(rig)
            // Whoever waits hears at once that nothing comes of it.
            #expect(try await told == [.known(.rejected)])
            isOver.add()
            await rig.pass(.seconds(70), step: .seconds(1))
            #expect(provider.addresses == ["one"])
            try await rig.expectRows(0)
        }
    }

    @Test(
        "A push whose registration ended while its call was held is not taken", arguments: EngineKind.allCases
    )
    func late(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let record = try await FeedbackTests.register(rig)
            let made = try FeedbackTests.pushed(1, of: record, rig)
            try await End.deleted.make(rig)
            try await rig.expect([.known(.rejected)], of: [made])
            #expect(provider.sent.isEmpty)
        }
    }

    @Test(
        "What one relay ends, the others on its store do not send: retries never, the rest from their next beat on",
        arguments: SharedEngine.allCases)
    func shared(_ engine: SharedEngine) async throws {
        let isBack = AwaitedCount()
        let busy = ScriptedProvider(Names.fcm) { push in
            isBack.count > 0 ? .accepted : push.address == "t9" ? .badCredential : .busy(.seconds(20))
        }
        let other = ScriptedProvider(Names.fcm) { _ in .accepted }
        var limits = DeliveryLimits()
        // No probe leaves meanwhile: it may be any push that is owed.
        limits.probeFirst = .seconds(60)
        try await Fleet.run(try await Depot.shared(engine), [.of(busy), .of(other)], limits: limits) { rigs in
            let record = try await FeedbackTests.register(rigs[0])
            try await rigs[0].expect(
                [.known(.retry)], of: [try FeedbackTests.pushed(1, of: record, rigs[0])])
            // Halted by three such answers in a row: what comes now waits in memory.
            try await rigs[0].expect([.known(.retry)], of: [push(9)])
            // A store that is slow to take a retry is slow to let it come back: time passes until it has.
            try await asked(for: "a lane that halts") {
                if try rigs[0].lane(Names.fcm).isHalted { return true }
                await rigs.pass(.milliseconds(500))
                return false
            }
            try await rigs[0].owe([try FeedbackTests.pushed(2, of: record, rigs[0])])
            try await End.deleted.make(rigs[1])
            await rigs.pass(.seconds(12))
            isBack.add()
            await rigs.pass(.seconds(70))
            #expect(Set(busy.addresses.dropFirst(1)) == ["t9"])
            #expect(other.sent.isEmpty)
            try await rigs[1].expectRows(0)
        }
    }
}
