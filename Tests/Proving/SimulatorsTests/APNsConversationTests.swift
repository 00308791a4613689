import NIOCore
import PushModel
import PushTesting
import Testing

@testable import Simulators

@Suite("The simulated APNs over TLS", .timeLimit(.minutes(30)))
struct APNsConversationTests {
    @Test("A push is accepted, recorded and told to who waits for its device")
    func acceptance() async throws {
        let stage = try await APNsStage()
        let client = try await stage.client()
        var watch = Sightings(client)
        let deliveries = stage.simulator.subscribe(token: APNsStage.token)
        // One token for the whole connection: another one would be an update.
        let fields = try stage.fields([("apns-id", APNsStage.id(7)), ("apns-priority", "5")])
        try await client.send(fields, body: APNsStage.body)
        guard
            case .settings(let first) = try await watch.next(where: {
                if case .settings = $0 { true } else { false }
            })
        else { return }
        #expect(first == [1: 4096, 3: 1, 4: 65_535, 5: 16_384, 6: 8000])
        let answer = try await watch.answer()
        #expect(answer.status == 200)
        #expect(answer.body.isEmpty)
        #expect(answer.fields["apns-id"] == APNsStage.id(7))
        #expect(answer.fields["apns-unique-id"] == nil)
        #expect(watch.all.contains(.settings([3: 1000])))
        let delivery = try await deliveries.next("a delivery")
        #expect(delivery.id == APNsStage.id(7))
        #expect(delivery.body == APNsStage.body)
        #expect(delivery.priority == 5)
        #expect(stage.simulator.deliveries() == [delivery])
        #expect(stage.simulator.counters.accepted == 1)

        try await client.send(fields, body: APNsStage.body)
        _ = try await watch.answer()
        #expect(stage.simulator.counters.doubles == 1)
        await client.close()
        await stage.simulator.stop()
    }

    @Test("A refusal carries its reason, an id and, with 410, since when")
    func refusal() async throws {
        let stage = try await APNsStage(environment: .sandbox)
        let client = try await stage.client()
        var watch = Sightings(client)
        stage.simulator.unregister(APNsStage.token, since: UnixTime(milliseconds: 1_799_999_999_123))
        let fields = try stage.fields()
        try await client.send(fields, body: APNsStage.body)
        let answer = try await watch.answer()
        #expect(answer.status == 410)
        #expect(answer.body == #"{"reason":"Unregistered","timestamp":1799999999123}"#)
        #expect(PushID(text: answer.fields["apns-id"] ?? "") != nil)
        #expect(stage.simulator.counters.byReason == ["Unregistered": 1])
        await client.close()
        await stage.simulator.stop()
    }

    @Test("Who does not speak HTTP/2 is shown out")
    func notHTTP2() async throws {
        let stage = try await APNsStage()
        let client = try await RawHTTP2Client.connect(
            port: stage.port, trusting: stage.authority, group: stage.group, protocols: [], speaks: false)
        var watch = Sightings(client)
        try await client.channel.writeAndFlush(
            ByteBuffer(string: "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        ).get()
        try await watch.next { $0 == .closed }
        #expect(!watch.all.contains { if case .answer = $0 { true } else { false } })
        #expect(stage.simulator.counters.received == 0)
        await stage.simulator.stop()
    }
}
