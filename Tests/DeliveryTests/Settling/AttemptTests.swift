@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("What an operator hears of single answers", .timeLimit(.minutes(30)))
struct AttemptTests {
    @Test("Each answer is told once, with its number, the service's word and what follows")
    func answers() async throws {
        let provider = ScriptedProvider(Names.fcm) { push in push.attempt == 0 ? .busy() : .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: [push(1)])
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(
                rig.answers.text == [
                    "acme/fcm/production 1 retry ServiceUnavailable again",
                    "acme/fcm/production 2 accepted Ok ended"
                ])
            #expect(Set(rig.attempts.all.map(\.id)) == Set(provider.sent.map(\.id)))
        }
    }

    @Test("A push that goes on in the sandbox, and one that waits for its credential, say so")
    func ways() async throws {
        let production = ScriptedProvider(Names.apns) { _ in .badDeviceToken }
        let sandbox = ScriptedProvider(Names.sandbox) { _ in .badCredential }
        let plan = DeliveryService.Setup.of(production, sandbox, environment: .learn)
        try await Rig.run(Depot(), plan, limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1, bundle: "org.acme")])
            #expect(
                rig.answers.text == [
                    "acme/apns/production 1 unregistered BadDeviceToken elsewhere",
                    "acme/apns/sandbox 1 misconfigured InvalidProviderToken again"
                ])
            // Named by its client, it has no other lane.
            try await rig.owe([push(2, .urgent, bundle: "org.acme", environment: .sandbox)])
            await rig.pass(.seconds(61), step: .seconds(1))
            await rig.pass(untilSent: 2, by: sandbox)
            try await asked(for: "the probe's answer") { try rig.lane(Names.sandbox).inFlight == 0 }
            #expect(rig.answers.text.last == "acme/apns/sandbox 1 misconfigured InvalidProviderToken waits")
        }
    }

    @Test("An operator's trial goes through a halted lane, brings back the answer, and owes nothing")
    func trial() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            push.address == "trial" ? .gone(at: UnixTime(seconds: 5)) : .badCredential
        }
        try await Rig.run(Depot(), .of(provider), limits: .haltsAtOnce) { rig in
            try await rig.expect([.known(.misconfigured)], of: [push(1)])
            #expect(try rig.lane().isHalted)
            let message = push(2, address: "trial").message
            let trial = try #require(await rig.service.testPush(Names.fcm, message))
            #expect(trial.answer?.reason == .unregisteredAPNs && trial.lane == Names.fcm)
            #expect(provider.sent.last?.id == trial.id)
            try await rig.expectRows(1)
            let lane = try rig.lane()
            #expect(lane.isHalted && lane.inMemory == 1)
            #expect(rig.answers.text.last == "acme/fcm/production 1 unregistered Unregistered ended")
            #expect(await rig.service.testPush(Names.otherAPNs, message) == nil, "no such lane")
        }
    }

    @Test("A trial gives up when no connection comes about, and leaves nothing behind")
    func noConnection() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            async let trial = rig.service.testPush(Names.fcm, push(1).message)
            await provider.waitForReservation()
            await rig.clock.sleepers(atLeast: 4)
            await rig.pass(.seconds(5), step: .seconds(1))
            let ended = try #require(await trial)
            #expect(ended.answer == nil)
            // The stream that comes later serves the lane's own pushes.
            provider.grant(1)
            try await rig.expect([.accepted], of: [push(2)])
            #expect(provider.addresses == ["t2"])
            #expect(rig.attempts.all.count == 1)
        }
    }
}
