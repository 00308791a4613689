import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("A word about a push is about the registration that it was made from", .timeLimit(.minutes(30)))
struct FeedbackTests {
    static let key = RecordKey(Space(core: "device"), Secret("device".utf8))
    static let owner = RecordKey(Space(core: "realm"), Secret("realm".utf8))

    /// Registers the phone, and returns what stands then.
    @discardableResult
    static func register(_ rig: Rig, at address: String = "one", touched: UnixTime? = nil) async throws
        -> Record?
    {
        let record = Record(
            key: key, owner: owner, address: RecordKey(Space(core: "address"), Secret(address.utf8)),
            touchedAt: touched ?? rig.clock.now, body: Secret(address.utf8))
        _ = try await rig.store.apply([.put(record, if: .any)])
        return try await rig.store.find([key])[0]
    }

    /// A push as a role makes it of that registration.
    static func pushed(_ number: Int, of record: Record?, _ rig: Rig) throws -> Push {
        let record = try #require(record)
        var made = push(
            number, address: record.body.reveal { String(decoding: $0, as: UTF8.self) }, record: record.key,
            touchedAt: record.touchedAt, custodyEnds: rig.clock.now + .seconds(86_400))
        made.registeredAddress = record.addressDigest
        return made
    }

    static func state(_ rig: Rig) async throws -> Record.State? {
        try await rig.store.find([key])[0]?.state
    }

    @Test(
        "Each answer to a registration's push is counted once, with the service's word",
        arguments: [
            (Answer.accepted, RegistrationEvent.delivered), (.rejected, .refused), (.badTopic, .refused),
            (.busy(), .delayed), (.notReached, .delayed)
        ])
    func counted(_ answer: Answer, _ event: RegistrationEvent) async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in answer }
        try await Rig.run(Depot(.memory), .of(provider)) { rig in
            let record = try await Self.register(rig)
            _ = try await rig.admit([try Self.pushed(1, of: record, rig)])
            #expect(rig.counts.text.first == "\(event.label) \(answer.reason.rawValue)")
            guard event != .delayed else { return }
            _ = try await rig.admit([push(2, address: "other")])
            #expect(rig.counts.text.count == 1, "no registration, no count")
        }
    }

    @Test("A push whose custody ends is counted once, in memory or between two tries")
    func expired() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .busy() }
        try await Rig.run(Depot(.memory), .of(provider)) { rig in
            let record = try await Self.register(rig)
            var made = try Self.pushed(1, of: record, rig)
            made.custodyEnds = rig.clock.now + .seconds(20)
            _ = try await rig.admit([made])
            await rig.pass(until: rig.outbox.ended, reaches: 1, step: .seconds(1))
            #expect(rig.counts.text.filter { $0 == "expired CustodyEnded" }.count == 1)
            #expect(rig.counts.text.filter { !$0.hasPrefix("delayed ") }.count == 1)
        }
    }

    /// A token is dead, as each service says it: without a time, and since a moment.
    enum Word: CaseIterable, Sendable {
        case unregistered, badDeviceToken, gone

        func answer(at now: UnixTime) -> Answer {
            switch self {
            case .unregistered: Answer(.unregistered(since: nil), .unregisteredFCM, sentAt: now)
            case .badDeviceToken: Answer(.unregistered(since: nil), .badDeviceToken, sentAt: now)
            case .gone: Answer(.unregistered(since: now), .unregisteredAPNs, sentAt: now)
            }
        }
    }

    @Test(
        "A push waits, the phone registers anew, and the retry is refused: the new registration lives",
        arguments: EngineKind.allCases, Word.allCases)
    func retried(_ kind: EngineKind, _ word: Word) async throws {
        let isRenewed = AwaitedCount()
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { [clock = depot.clock] push in
            push.address == "other" ? .accepted : isRenewed.count > 0 ? word.answer(at: clock.now) : .busy()
        }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.expect([.accepted], of: [push(1, address: "other")])
            let first = try await Self.register(rig)
            try await rig.expect([.known(.retry)], of: [try Self.pushed(2, of: first, rig)])
            rig.clock.advance(by: .milliseconds(1))
            try await Self.register(rig)
            isRenewed.add()
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(try await Self.state(rig) == .live)
            // What it says of the new one counts.
            let second = try Self.pushed(3, of: try await rig.store.find([Self.key])[0], rig)
            try await rig.expect([.known(.unregistered)], of: [second])
            #expect(try await Self.state(rig) == .expired(at: rig.clock.now))
        }
    }

    @Test(
        "A token is refused whose phone has another by now: that one lives, whatever the clocks say",
        arguments: EngineKind.allCases, [-60, 0, 60])
    func underWay(_ kind: EngineKind, _ seconds: Int) async throws {
        let isRenewed = AwaitedCount()
        let depot = Depot(kind)
        let provider = ScriptedProvider(Names.fcm) { [clock = depot.clock] push in
            await isRenewed.wait(for: 1)
            return Word.unregistered.answer(at: clock.now + .seconds(90))
        }
        try await Rig.run(depot, .of(provider)) { rig in
            let first = try await Self.register(rig)
            try await rig.owe([try Self.pushed(1, of: first, rig)])
            await provider.waitForSent(1)
            // By another relay, whose clock is not ours.
            try await Self.register(rig, at: "two", touched: rig.clock.now + .seconds(seconds))
            isRenewed.add()
            await rig.outbox.trace.until { $0.contains("settled") }
            #expect(try await Self.state(rig) == .live)
        }
    }
}
