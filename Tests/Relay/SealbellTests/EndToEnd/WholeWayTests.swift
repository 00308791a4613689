import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("From a Zulip server to a phone, over real sockets", .timeLimit(.minutes(30)))
struct WholeWayTests {
    @Test("Messages, removals and tests arrive through Apple and Google, and only the phone can read them")
    func allKinds() async throws {
        try await RelayStage.running { relay in
            let server = try await relay.server()
            for kind in [TokenKind.apns, .fcm] {
                let phone = try await relay.phone(kind, of: server)
                let stream =
                    kind == .apns
                    ? relay.stage.apns.subscribe(token: phone.token)
                    : relay.stage.fcm.subscribe(address: phone.token)
                let arrivals = stream
                for body in [
                    DemoApp.message(5, "see you at nine"), .remove([5, 6]), .test(time: 1_800_000_000)
                ] {
                    let answer = try await server.notify(body, [phone], relay)
                    #expect(answer.status == 200 && answer.dead.isEmpty)
                    #expect(answer.apple == (kind == .apns ? 1 : 0))
                    #expect(answer.android == (kind == .fcm ? 1 : 0))
                    let delivery = try await arrivals.next("a delivery")
                    #expect(try phone.open(delivery) == phone.notification(body))
                    #expect(!String(decoding: delivery.body, as: UTF8.self).contains("nine"))
                    if kind == .apns {
                        #expect(delivery.topic == "org.acme.chat")
                        let isRemoval = body == .remove([5, 6])
                        #expect(delivery.pushType == (isRemoval ? .background : .alert))
                        #expect(delivery.priority == (isRemoval ? 5 : 10))
                        #expect(PushID(text: delivery.id) != nil)
                    }
                }
            }
            try await relay.drained()
        }
    }

    @Test("One call reaches many phones of both kinds, each once")
    func many() async throws {
        try await RelayStage.running { relay in
            let server = try await relay.server()
            var phones: [DemoApp] = []
            for index in 0..<12 {
                phones.append(try await relay.phone(index.isMultiple(of: 3) ? .fcm : .apns, of: server))
            }
            let answer = try await server.notify(DemoApp.message(1, "all"), phones, relay)
            #expect(answer.apple == 8 && answer.android == 4)
            try await relay.drained()
            #expect(Set(relay.stage.apns.deliveries().map(\.token)).count == 8)
            #expect(Set(relay.stage.fcm.deliveries().map(\.token)).count == 4)
            #expect(relay.stage.apns.counters.doubles == 0)
        }
    }

    @Test("A phone of Apple's sandbox is found there, under the same id, and remembered")
    func learns() async throws {
        try await RelayStage.with { stage in
            stage.apns.turn { $0.learnsDevices = false }
            try await stage.run { relay in
                let (server, phone) = try await relay.join(.apns)
                stage.sandboxAPNs.register(phone.token, as: APNsDevice(topics: ["org.acme.chat"]))
                for id in 1...2 as ClosedRange<Int64> {
                    let answer = try await server.notify(DemoApp.message(id, "hi"), [phone], relay)
                    #expect(answer.apple == 1 && answer.dead.isEmpty)
                }
                let deliveries = stage.sandboxAPNs.deliveries()
                #expect(deliveries.count == 2)
                for delivery in deliveries { _ = try phone.open(delivery) }
                // Asked once in the wrong world, and never again.
                #expect(stage.apns.counters.received == 1)
                #expect(stage.apns.counters.byReason["BadDeviceToken"] == 1)
                try await relay.drained()
            }
        }
    }

    @Test("A device that is gone is named in the answer, once at the service and always to the server")
    func gone() async throws {
        try await RelayStage.running { relay in
            let (server, phone) = try await relay.join(.apns)
            let other = try await relay.phone(.fcm, of: server)
            let phones = [phone, other]
            #expect(try await server.notify(.test(time: 1), phones, relay).dead.isEmpty)
            relay.stage.apns.unregister(phone.token, since: World.live.now())
            relay.stage.fcm.register(other.token, as: FCMDevice(project: "acme", isLive: false))
            let both = Set(phones.map(\.tokenID.text))
            let answer = try await server.notify(.test(time: 2), phones, relay)
            #expect(Set(answer.dead) == both && answer.apple == 0 && answer.android == 0)
            try await relay.drained()
            let before = relay.stage.apns.counters.received + relay.stage.fcm.counters.received
            let again = try await server.notify(.test(time: 3), phones, relay)
            #expect(Set(again.dead) == both)
            #expect(relay.stage.apns.counters.received + relay.stage.fcm.counters.received == before)
            try await relay.drained()
        }
    }

    @Test("A repeated call is answered as the first was, and sends nothing")
    func repeated() async throws {
        try await RelayStage.running { relay in
            let (server, phone) = try await relay.join(.apns)
            let calls = try server.notify(phone.notification(.test(time: 1)), [phone])
            let call = try #require(calls.first)
            #expect(try await relay.ask(call).apple == 1)
            #expect(try await relay.ask(call).apple == 1)
            #expect(relay.stage.apns.counters.received == 1)
        }
    }
}
