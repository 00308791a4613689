import AtRest
import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("Probes of a halted lane", .timeLimit(.minutes(30)))
struct ProbeTests {
    /// A push for which the service finds fault with us, whatever becomes of others.
    private static func service(_ slots: Int = 1) -> ScriptedProvider {
        ScriptedProvider(Names.fcm, slots: slots) { push in
            push.address.hasPrefix("bad") ? .badCredential : .accepted
        }
    }

    private func halt(_ rig: Rig, _ number: Int = 1, _ pushClass: PushClass = .normal) async throws {
        let bad = push(number, origin: "bad", pushClass, address: "bad\(number)")
        try await rig.expect([.known(.misconfigured)], of: [bad])
    }

    @Test(
        "What halted the lane keeps nobody else, of whatever class and origin",
        arguments: [PushClass.urgent, .normal], ["bad", "one"])
    func rotates(_ pushClass: PushClass, _ origin: String) async throws {
        let provider = Self.service()
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await halt(rig, 1, pushClass)
            try await rig.owe((2...11).map { push($0, origin: origin) })
            await rig.pass(.seconds(125), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 10)
            #expect(Set(provider.addresses.filter { $0 != "bad1" }).count == 10)
        }
    }

    @Test("Each of ten probes is another push, and then it is the turn of the first again")
    func turns() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .badCredential }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            try await rig.owe((2...4).map { push($0, .urgent) })
            try await rig.owe((5...10).map { push($0, origin: "o\($0 % 3)") })
            for minute in 1...20 {
                await rig.pass(.seconds(60), step: .seconds(1))
                await rig.pass(untilSent: minute + 1, by: provider)
                // Its answer is back where it came from.
                try await asked(for: "the probe's answer") { try rig.lane().inFlight == 0 }
            }
            let probes = provider.addresses.dropFirst()
            #expect(Set(probes.prefix(10)).count == 10)
            #expect(Array(probes.prefix(10)) == Array(probes.dropFirst(10)))
            try await rig.expectRows(10)
        }
    }

    @Test("The turn comes to what is parked in the store too", arguments: EngineKind.allCases)
    func parked(_ kind: EngineKind) async throws {
        let provider = Self.service()
        let limits = changing(DeliveryLimits.haltsAtOnce) { $0.lanePushes = 4 }
        try await Rig.run(Depot(kind), .of(provider), limits: limits) { rig in
            try await halt(rig)
            // Memory is full of pushes that cannot prove the credential; the one that can waits in the store.
            try await rig.owe((2...6).map { push($0, origin: "bad", address: "bad\($0)") })
            try await rig.owe([push(100, origin: "bad", .background)])
            await rig.pass(.seconds(60 * 12), step: .seconds(1))
            #expect(provider.addresses.contains("t100"))
            #expect(rig.events.text.contains("acme/fcm/production resumed"))
        }
    }

    @Test("What probes could not send goes behind the others when the lane goes on")
    func goesOn() async throws {
        let works = AwaitedCount()
        let provider = ScriptedProvider(Names.fcm) { _ in works.count > 0 ? .accepted : .badCredential }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            try await rig.owe((2...4).map { push($0) })
            await rig.pass(.seconds(125), step: .seconds(1))
            await rig.pass(untilSent: 3, by: provider)
            try await asked(for: "the probe's answer") { try rig.lane().inFlight == 0 }
            works.add()
            await rig.pass(.seconds(60), step: .seconds(1))
            await rig.pass(until: rig.outbox.ended, reaches: 4)
            #expect(provider.addresses.prefix(4) == ["t1", "t2", "t3", "t4"])
            // The one that halted the lane comes back when the store has it, which may be slow.
            #expect(provider.addresses.dropFirst(4).filter { $0 != "t1" } == ["t2", "t3"])
        }
    }

    @Test("The first probe is for somebody who was lately reached, whatever its class and who else waits")
    func known() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in
            push.address.hasPrefix("bad") ? .badDeviceToken : .accepted
        }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.accepted], of: [push(1, origin: "victim", address: "phone")])
            // Three that had a phone accepted each may halt the lane with what they make up.
            for number in 1...3 {
                try await rig.expect([.accepted], of: [push(10 + number, origin: "attacker \(number)")])
            }
            var halted = 0
            for number in 100..<200 where rig.events.text.isEmpty {
                let made = push(number, origin: "attacker \(number % 3 + 1)", address: "bad\(number)")
                halted += 1
                _ = try await rig.admit([made])
            }
            #expect(rig.events.text == ["acme/fcm/production halted targets"])
            for number in 200..<260 {
                let origin = "attacker \(number % 3 + 1)"
                try await rig.owe([push(number, origin: origin, .urgent, address: "bad\(number)")])
                try await rig.owe([push(number + 100, origin: origin, address: "bad\(number + 100)")])
            }
            try await rig.owe([push(400, origin: "victim", address: "other phone")])
            try await rig.owe([push(401, origin: "victim", .background, address: "phone")])
            let before = provider.addresses.count
            await rig.pass(.seconds(60), step: .seconds(1))
            await rig.pass(untilSent: before + 1, by: provider)
            #expect(provider.addresses[before] == "phone")
            // And accepted, it lets all go.
            await rig.pass(until: rig.outbox.ended, reaches: 4 + halted + 1)
            #expect(rig.events.text.dropFirst().first == "acme/fcm/production resumed")
        }
    }

    @Test(
        "A push that comes back lets a lane go that was halted without its origin, and somebody hears of it")
    func reopened() async throws {
        let gate = AwaitedCount()
        let first = Once()
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            guard push.address == "phone" else { return .badDeviceToken }
            guard first.take() else { return .accepted }
            await gate.wait(for: 1)
            return .silence
        }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.owe([push(1, origin: "other", address: "phone")])
            await provider.waitForSent(1)
            // Of an origin that no answer came for nothing is known: one other may halt the lane.
            for number in 2...21 { _ = try await rig.admit([push(number)]) }
            #expect(rig.events.text == ["acme/fcm/production halted targets"])
            gate.add()
            try await asked(for: "a lane that goes on") { try !rig.lane().isHalted }
            #expect(rig.events.text == ["acme/fcm/production halted targets", "acme/fcm/production loosened"])
            await rig.pass(until: rig.outbox.ended, reaches: 21)
        }
    }
}
