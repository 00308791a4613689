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

    @Test("A credential that is refused halts the lane that hears it, and no other of its lanes; all is kept")
    func halts() async throws {
        let shared = Credential()
        let bad = ScriptedProvider(Names.apns) { _ in .badCredential }
        let sibling = ScriptedProvider(Names.otherAPNs) { _ in .accepted }
        let stranger = ScriptedProvider(Names.fcm) { _ in .accepted }
        let plan = DeliveryService.Setup.of([(bad, shared), (sibling, shared), (stranger, Credential())])
        try await Rig.run(Depot(), plan) { rig in
            try await rig.expect([.known(.retry)], of: [push(1, bundle: "org.acme")])
            // Alone, it halts its lane by what it is answered again and again.
            await rig.pass(.seconds(5))
            await rig.pass(untilSent: 3, by: bad)
            try await asked(for: "a lane that halts") { try rig.lane(Names.apns).isHalted }
            try await rig.expect([.accepted], of: [push(2, bundle: "org.other")])
            try await rig.expect([.accepted], of: [push(3)])
            let halted = rig.service.snapshot().filter(\.isHalted)
            #expect(halted.map(\.lane) == [Names.apns] && halted.first?.haltedFor == .credential)
            #expect(rig.events.text == ["acme/apns/production halted credential"])
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            try await rig.expectRows(1)
        }
    }

    @Test("A halted lane probes after a second, then after twice as long each time, up to a minute")
    func probes() async throws {
        let key = Key()
        let depot = Depot()
        let times = Mutex<[Int]>([])
        let provider = ScriptedProvider(Names.apns) { _ in
            times.withLock { $0.append(Int(depot.clock.elapsed.components.seconds)) }
            return key.answer
        }
        let limits = changing(DeliveryLimits.haltsAtOnce) { $0.probeFirst = .seconds(1) }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            var earliest = Int(depot.clock.elapsed.components.seconds)
            try await rig.expect([.known(.misconfigured)], of: [push(1, bundle: "org.acme")])
            try await rig.owe((2...5).map { push($0, bundle: "org.acme") })
            for number in 2...10 { await rig.pass(untilSent: number, by: provider) }
            let probes = times.withLock(\.self)
            // On a busy machine one is noted later than it left, and the next so much less after it. But none
            // leaves before its time, counted from the first.
            for (probe, span) in zip(probes.dropFirst(), [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
                earliest += span
                #expect(probe >= earliest && probe <= earliest + span / 2 + 10, "\(probes)")
            }
            key.mend()
            await rig.pass(.seconds(62), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 5)
            try await rig.expectRows(0)
            #expect(rig.events.text.last == "acme/apns/production resumed")
        }
        #expect(Set(provider.sent.map(\.id)).count == 5)
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
        limits.breakerFaults = 1
        let provider = ScriptedProvider(Names.fcm) { _ in key.answer }
        try await Rig.run(depot, .of(provider), limits: limits) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            key.mend()
            await rig.pass(.seconds(5), step: .seconds(1))
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
            switch push.address {
            case "t25": .gone(at: depot.clock.now)
            case let address where address.hasPrefix("t1") && address.count == 4: .accepted
            default: .badDeviceToken
            }
        }
        try await Rig.run(depot, .of(provider)) { rig in
            // So many phones vouch for the lane that a few dead ones in a row are nothing strange.
            for number in 100...199 { try await rig.expect([.accepted], of: [push(number)]) }
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
            await rig.pass(.seconds(2))
            await rig.pass(untilSent: 121, by: provider)
            try await rig.owe([push(25, record: key(25), touchedAt: touched)])
            await rig.pass(.seconds(4))
            await rig.pass(until: rig.outbox.ended, reaches: 122)
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

    @Test("A lane that comes to a credential that is refused finds out by itself")
    func lateLane() async throws {
        let key = Key()
        let shared = Credential()
        let old = ScriptedProvider(Names.fcm) { _ in key.answer }
        try await Rig.run(Depot(), .of([(old, shared)]), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            key.mend()
            let new = ScriptedProvider(Names.fcm) { _ in key.answer }
            rig.service.adopt(.of([(new, shared)], stamp: 1))
            try await rig.expect([.accepted], of: [push(2)])
            await rig.pass(.seconds(10), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(new.sent.count == 2)
            #expect(old.sent.count == 1)
        }
    }
}
