import AtRest
import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

/// Faults of the credential that are said once, and no more (decision 0079).
@Suite("Stray faults of a credential", .timeLimit(.minutes(30)))
struct DeliveryStrayFaultTests {
    static let strays = [
        Answer.badCredential, Answer(.misconfigured(.credential), .notFound, sentAt: Answer.sent),
        Answer(.retry(after: nil), .tooManyProviderTokenUpdates, sentAt: Answer.sent),
        Answer(.retry(after: nil), .foreignAnswer, sentAt: Answer.sent, fate: .unprocessed)
    ]

    @Test("One among acceptances is that push's own retry, and holds up nobody", arguments: strays)
    func one(_ stray: Answer) async throws {
        let isFirst = Once()
        let provider = ScriptedProvider(Names.fcm, slots: 4) { push in
            push.address == "t20" && isFirst.take() ? stray : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...60).map { push($0, origin: "o\($0 % 4)") })
            // No time passes: whoever waited for a probe would wait for ever.
            await rig.outbox.ended.wait(for: 59)
            #expect(rig.events.text.isEmpty)
            await rig.pass(.seconds(2))
            await rig.pass(until: rig.outbox.ended, reaches: 60)
            #expect(provider.sent.count == 61)
            #expect(rig.events.text.isEmpty)
        }
    }

    @Test("A push that alone meets the fault, among acceptances, is tried less and less often")
    func alone() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "bad" ? .badCredential : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1, address: "bad")])
            for number in 2...601 {
                try await rig.expect([.accepted], of: [push(number, origin: "two")])
                await rig.pass(.seconds(1), step: .seconds(1))
            }
            let tries = provider.addresses.count { $0 == "bad" }
            #expect((10...40).contains(tries), "\(tries) in ten minutes")
            #expect(rig.events.text.isEmpty)
        }
    }

    @Test("In a row, without an acceptance between, they halt the lane, whichever pushes hear them")
    func several() async throws {
        let isBad = Mutex(true)
        let provider = ScriptedProvider(Names.fcm) { _ in isBad.withLock(\.self) ? .badCredential : .accepted
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...10).map { push($0) })
            await provider.waitForSent(3)
            try await asked(for: "a lane that halts") { try rig.lane().isHalted }
            // The slot was free a moment before the lane had judged the answer.
            #expect(provider.sent.count <= 4)
            isBad.withLock { $0 = false }
            await rig.pass(.milliseconds(1_200))
            await rig.pass(until: rig.outbox.ended, reaches: 10)
            #expect(
                rig.events.text == ["acme/fcm/production halted credential", "acme/fcm/production resumed"])
        }
    }

    @Test("While the same credential is accepted in another lane, a lane's few faults are strays")
    func besideAnother() async throws {
        let shared = Credential()
        let bad = ScriptedProvider(Names.apns) { _ in .badCredential }
        let sibling = ScriptedProvider(Names.otherAPNs) { _ in .accepted }
        try await Rig.run(Depot(), .of([(bad, shared), (sibling, shared)])) { rig in
            try await rig.owe([push(1, bundle: "org.acme")])
            for number in 1...6 {
                await rig.pass(untilSent: number, by: bad)
                try await asked(for: "an answer") { try rig.lane(Names.apns).inFlight == 0 }
                #expect(rig.events.text.isEmpty)
                try await rig.expect([.accepted], of: [push(100 + number, bundle: "org.other")])
            }
            await rig.pass(untilSent: 9, by: bad)
            try await asked(for: "a lane that halts") { try rig.lane(Names.apns).isHalted }
        }
    }

    @Test("Provider tokens that are refused for hours halt the lane, are told, and cost a probe a minute")
    func tokenUpdates() async throws {
        let isOver = Mutex(false)
        let refusal = Answer(.retry(after: nil), .tooManyProviderTokenUpdates, sentAt: Answer.sent)
        let provider = ScriptedProvider(Names.apns, slots: 8) { _ in
            isOver.withLock(\.self) ? .accepted : refusal
        }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...200).map { push($0, bundle: "org.acme") })
            await rig.pass(.seconds(600), step: .milliseconds(500))
            #expect(rig.events.text == ["acme/apns/production halted credential"])
            let lane = try rig.lane(Names.apns)
            #expect(lane.reason == .tooManyProviderTokenUpdates)
            #expect(provider.sent.count < 40, "\(provider.sent.count) requests in ten minutes")
            isOver.withLock { $0 = true }
            await rig.pass(.seconds(61), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 200)
        }
    }
}

/// Answers of one environment about the credential of both (decision 0079).
@Suite("A key for one environment alone", .timeLimit(.minutes(30)))
struct BoundKeyTests {
    private static func key(_ name: String) -> RecordKey {
        RecordKey(Space(Names.instance, "device"), Secret(name.utf8))
    }

    /// What Apple says of a key that is not for the environment.
    private static let unbound = Answer(
        .misconfigured(.credential), .badEnvironmentKeyIdInToken, sentAt: Answer.sent)

    private func plan(
        _ production: ScriptedProvider, _ sandbox: ScriptedProvider
    ) -> DeliveryService.Setup { .of(production, sandbox, environment: .learn) }

    private func production() -> ScriptedProvider {
        ScriptedProvider(Names.apns, slots: 4) { push in
            push.address.hasPrefix("dead") ? .badDeviceToken : .accepted
        }
    }

    @Test(
        "A dead token that is tried there holds up nobody, and ends by the word of its first lane",
        arguments: EngineKind.allCases)
    func dead(_ kind: EngineKind) async throws {
        let production = production()
        let sandbox = ScriptedProvider(Names.sandbox) { _ in Self.unbound }
        let depot = Depot(kind)
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            let touched = depot.clock.now - .seconds(3_600)
            _ = try await rig.store.apply(
                (1...4).map {
                    .put(
                        Record(key: Self.key("dead \($0)"), touchedAt: touched, body: Secret([1])), if: .any)
                })
            func dead(_ number: Int) -> Push {
                push(
                    number, origin: "stranger", bundle: "org.acme", address: "dead \(number)",
                    record: Self.key("dead \(number)"), touchedAt: touched)
            }
            try await rig.owe([dead(1), dead(2)])
            for number in 100..<130 {
                try await rig.expect([.accepted], of: [push(number, origin: "two", bundle: "org.acme")])
            }
            await rig.pass(.seconds(10))
            await rig.pass(until: rig.outbox.ended, reaches: 32)
            #expect(rig.events.text == ["acme/apns/sandbox halted credential"])
            // From now on nobody is asked: the sandbox has said what it says to all.
            let asked = sandbox.sent.count
            #expect(asked <= 8)
            try await rig.owe([dead(3), dead(4)])
            await rig.outbox.ended.wait(for: 34)
            #expect(sandbox.sent.count == asked)
            let records = try await rig.store.find((1...4).map { Self.key("dead \($0)") })
            #expect(records.allSatisfy { $0?.state != .live }, "and their registrations have ended")
            try await rig.expectRows(0)
        }
    }

    @Test("A stray fault there costs a device of the sandbox neither its push nor its registration")
    func stray() async throws {
        let isFirst = Once()
        let production = production()
        let sandbox = ScriptedProvider(Names.sandbox) { _ in isFirst.take() ? Self.unbound : .accepted }
        let depot = Depot()
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            let touched = depot.clock.now
            let record = Record(key: Self.key("phone"), touchedAt: touched, body: Secret([1]))
            _ = try await rig.store.apply([.put(record, if: .any)])
            try await rig.expect(
                [.known(.retry)],
                of: [
                    push(
                        1, bundle: "org.acme", address: "dead phone", record: Self.key("phone"),
                        touchedAt: touched)
                ])
            await rig.pass(.seconds(2))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(sandbox.sent.count == 2 && rig.events.text.isEmpty)
            let stands = try await rig.store.find([Self.key("phone")])[0]?.state
            #expect(stands == .live)
        }
    }

    @Test("What is known to be the sandbox's, or named so, is kept until its credential works again")
    func known() async throws {
        let works = Mutex(true)
        let production = production()
        let sandbox = ScriptedProvider(Names.sandbox) { _ in
            works.withLock(\.self) ? .accepted : Self.unbound
        }
        try await Rig.run(Depot(), plan(production, sandbox)) { rig in
            try await rig.expect([.accepted], of: [push(1, bundle: "org.acme", address: "dead one")])
            await rig.outbox.ended.wait(for: 1)
            works.withLock { $0 = false }
            try await rig.owe([push(2, bundle: "org.acme", address: "dead one")])
            try await rig.owe([push(3, bundle: "org.acme", environment: .sandbox, address: "named")])
            await rig.pass(.seconds(30), step: .milliseconds(500))
            #expect(rig.events.text == ["acme/apns/sandbox halted credential"])
            try await rig.expectRows(2)
            works.withLock { $0 = true }
            await rig.pass(.seconds(61), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 3)
        }
    }

    @Test("That the key is good in one environment makes no stray of what the other says of it")
    func apart() async throws {
        let production = production()
        let sandbox = ScriptedProvider(Names.sandbox) { _ in Self.unbound }
        try await Rig.run(Depot(), plan(production, sandbox)) { rig in
            try await rig.owe([push(1, bundle: "org.acme", environment: .sandbox, address: "named")])
            for number in 1...3 {
                await rig.pass(untilSent: number, by: sandbox)
                try await asked(for: "an answer") { try rig.lane(Names.sandbox).inFlight == 0 }
                try await rig.expect([.accepted], of: [push(100 + number, bundle: "org.acme")])
            }
            #expect(try rig.lane(Names.sandbox).isHalted)
        }
    }

    @Test("A fault that says nothing of environments ends nothing there: a device of the sandbox waits")
    func refused() async throws {
        let works = Mutex(false)
        let production = production()
        let sandbox = ScriptedProvider(Names.sandbox) { _ in
            works.withLock(\.self) ? .accepted : .badCredential
        }
        let depot = Depot()
        try await Rig.run(depot, plan(production, sandbox)) { rig in
            let touched = depot.clock.now - .seconds(3_600)
            let phones = (1...5).map { Self.key("phone \($0)") }
            _ = try await rig.store.apply(
                phones.map { .put(Record(key: $0, touchedAt: touched, body: Secret([1])), if: .any) })
            try await rig.owe(
                (1...5).map {
                    push(
                        $0, bundle: "org.acme", address: "dead phone \($0)", record: phones[$0 - 1],
                        touchedAt: touched)
                })
            await rig.pass(.seconds(30))
            #expect(rig.events.text == ["acme/apns/sandbox halted credential"])
            try await rig.expectRows(5)
            works.withLock { $0 = true }
            await rig.pass(.seconds(61), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: 5)
            let records = try await rig.store.find(phones)
            #expect(records.allSatisfy { $0?.state == .live })
        }
    }

    @Test("A volatile push ends there as well")
    func volatile() async throws {
        let production = ScriptedProvider(Names.apns, slots: 2) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in Self.unbound }
        try await Rig.run(Depot(), plan(production, sandbox)) { rig in
            rig.admitVolatile(1...5, bundle: "org.acme")
            await rig.pass(.seconds(15))
            await rig.passUntilNothingOwed()
            #expect(rig.events.text == ["acme/apns/sandbox halted credential"])
            #expect(sandbox.sent.count <= 12)
        }
    }
}
