import AtRest
import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Faults of the operator and faults of clients", .timeLimit(.minutes(30)))
struct CredentialTests {
    /// A credential that works or does not.
    private final class Key: Sendable {
        let works = Mutex(false)
        func mend() { works.withLock { $0 = true } }
        var answer: Answer { works.withLock { $0 } ? .accepted : .badCredential }
    }

    @Test("One fault of a credential halts all its lanes at once, and no other; the pushes are kept")
    func halts() async throws {
        let shared = Credential()
        let bad = ScriptedProvider(Names.apns) { _ in .badCredential }
        let sibling = ScriptedProvider(Names.otherAPNs) { _ in .accepted }
        let stranger = ScriptedProvider(Names.fcm) { _ in .accepted }
        let plan = DeliveryService.Setup.of([(bad, shared), (sibling, shared), (stranger, Credential())])
        try await Rig.run(Depot(), plan) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1, bundle: "org.acme")])
            try await rig.expect([.pending], of: [push(2, bundle: "org.other")])
            try await rig.expect([.accepted], of: [push(3)])
            await rig.pass(.seconds(50), step: .seconds(1))
            #expect(bad.sent.count == 1)
            #expect(sibling.sent.isEmpty)
            try await rig.expectRows(2)
            let halted = rig.service.snapshot().filter(\.isHalted)
            #expect(halted.map(\.lane) == [Names.apns, Names.otherAPNs])
            #expect(halted.allSatisfy { $0.haltedFor == .credential && $0.inMemory == 1 })
            #expect(
                rig.events.text == [
                    "acme/apns/production halted credential", "other/apns/production halted credential"
                ])
        }
    }

    @Test("A halted lane probes once a minute with one push, and one acceptance lets all lanes go")
    func probes() async throws {
        let key = Key()
        let shared = Credential()
        let probing = ScriptedProvider(Names.apns) { _ in key.answer }
        let sibling = ScriptedProvider(Names.otherAPNs) { _ in key.answer }
        try await Rig.run(Depot(), .of([(probing, shared), (sibling, shared)])) { rig in
            try await rig.owe((1...5).map { push($0, bundle: "org.acme") })
            await probing.waitForSent(1)
            // The answer halts both lanes, a moment after the request.
            try await asked(for: "a lane that halts") { try rig.lane(Names.otherAPNs).isHalted }
            try await rig.expect([.pending], of: [push(100, bundle: "org.other")])
            await rig.pass(.seconds(30), step: .seconds(1))
            // The slot was free a moment before the lane had judged the answer.
            let before = probing.sent.count
            #expect(before <= 2)
            for minute in 1...3 {
                await rig.pass(.seconds(minute == 1 ? 29 : 59), step: .seconds(1))
                #expect(probing.sent.count == before + minute - 1)
                await rig.pass(.milliseconds(1_000))
                await probing.waitForSent(before + minute)
                await rig.pass(.milliseconds(200))
                #expect(probing.sent.count == before + minute)
            }
            key.mend()
            await rig.pass(.seconds(61), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 6)
            try await rig.expectRows(0)
            #expect(rig.service.snapshot().allSatisfy { !$0.isHalted })
            #expect(
                Set(rig.events.text.suffix(2)) == [
                    "acme/apns/production resumed", "other/apns/production resumed"
                ])
        }
        #expect(Set(probing.sent.map(\.id)).count == 5)
    }

    @Test(
        "Told of a fault of the credential, a repeat hears the same after the push was delivered",
        arguments: EngineKind.allCases)
    func firstOutcome(_ kind: EngineKind) async throws {
        let key = Key()
        let depot = Depot(kind)
        var limits = DeliveryLimits()
        // What was told in this process is forgotten at once: only the mark can know.
        limits.recentOutcomes = 0
        let provider = ScriptedProvider(Names.fcm) { _ in key.answer }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            key.mend()
            await rig.pass(.seconds(61), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            #expect(provider.sent.count == 2)
        }
    }

    @Test(
        "Target faults of twenty addresses halt the lane and spare registrations; a true 410 still expires"
    )
    func targets() async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address == "t25" ? .gone(at: depot.clock.now) : .badDeviceToken
        }
        try await Rig.run(depot, .of(provider)) { rig in
            let touched = depot.clock.now - .seconds(60)
            func key(_ number: Int) -> RecordKey {
                RecordKey(Space(Names.instance, "device"), Secret("phone \(number)".utf8))
            }
            _ = try await rig.store.apply(
                (1...25).map { .put(Record(key: key($0), touchedAt: touched, body: Secret([1])), if: .any) })
            for number in 1...19 {
                try await rig.expect(
                    [.known(.unregistered)], of: [push(number, record: key(number), touchedAt: touched)])
            }
            #expect(rig.events.text.isEmpty)
            try await rig.expect(
                [.known(.misconfigured)], of: [push(20, record: key(20), touchedAt: touched)])
            #expect(rig.events.text == ["acme/fcm/production halted targets"])
            try await rig.owe([push(21, record: key(21), touchedAt: touched)])
            await rig.pass(.seconds(60), step: .seconds(1))
            await rig.pass(untilSent: 21, by: provider)
            try await rig.owe([push(25, record: key(25), touchedAt: touched)])
            await rig.pass(.seconds(60), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 22)
            let records = try await rig.store.find([key(19), key(20), key(21), key(25)])
            #expect(records.map { $0?.state == .live } == [false, true, true, false])
        }
    }

    @Test("One client's bad topic never halts the app")
    func badTopic() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in push.address == "bad" ? .badTopic : .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            for number in 1...200 {
                try await rig.expect([.known(.misconfigured)], of: [push(number, address: "bad")])
            }
            #expect(rig.events.text.isEmpty)
            try await rig.expect([.accepted], of: [push(201)])
        }
    }

    @Test("A lane that its own targets halted goes on probing when the credential comes back")
    func targetsThenCredential() async throws {
        let key = Key()
        let shared = Credential()
        let probing = ScriptedProvider(Names.apns) { push in push.address == "good" ? .accepted : .badTopic }
        let sibling = ScriptedProvider(Names.otherAPNs) { _ in key.answer }
        try await Rig.run(Depot(), .of([(probing, shared), (sibling, shared)])) { rig in
            for number in 1...20 {
                try await rig.expect([.known(.misconfigured)], of: [push(number, bundle: "org.acme")])
            }
            try await rig.owe([push(30, bundle: "org.acme", address: "good")])
            try await rig.owe([push(40, bundle: "org.other")])
            await sibling.waitForSent(1)
            // Mended at once: the sibling's probe comes no later than the halted lane's own.
            key.mend()
            await rig.pass(.seconds(121), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 22)
            #expect(rig.service.snapshot().allSatisfy { !$0.isHalted })
        }
    }

    @Test(
        "A lane that comes to a halted credential is halted too, and finds out by itself when it works again")
    func lateLane() async throws {
        let key = Key()
        let shared = Credential()
        let old = ScriptedProvider(Names.fcm) { _ in key.answer }
        try await Rig.run(Depot(), .of([(old, shared)])) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            let new = ScriptedProvider(Names.fcm) { _ in key.answer }
            rig.service.adopt(.of([(new, shared)], stamp: 1))
            try await rig.expect([.pending], of: [push(2)])
            key.mend()
            await rig.pass(.seconds(70), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(new.sent.count == 2)
            #expect(old.sent.count == 1)
        }
    }
}
