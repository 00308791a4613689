import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import StatusPush
import Testing
import WakuIngress
import WireFormats

@testable import RelayProgram

/// What somebody who has proved nothing but a key of their own can do to a relay and its node.
@Suite("Status among strangers", .timeLimit(.minutes(30)))
struct StatusStrangerTests {
    /// Puts a message on the network, sealed to the server or to a topic.
    private static func publish(
        _ wrapped: Secret, to server: PublicPoint, asking topic: WakuTopic? = nil, _ relay: RunningRelay
    ) {
        let network = relay.stage.sandbox.waku.network
        let payload =
            topic.map {
                WakuPayload.sealSymmetric(wrapped, key: TopicKey.derive(from: $0), signer: nil, .live)
            }
            ?? WakuPayload.sealAsymmetric(wrapped, to: server, signer: nil, .live)
        let message = SimulatedWakuMessage(
            payload: payload.reveal { Array($0) },
            contentTopic: (topic ?? .partitioned(of: server)).contentTopic, timestamp: network.now)
        #expect(payload.count <= StatusLimits.carriedBytes)
        network.publish(message, on: WakuNodeSimulator.pubsubTopic)
    }

    @Test("Two registrations as long as a message can be, and a query that names them 64 times, harm nobody")
    func threeMessages() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            let stranger = Secp256k1KeyPair.generate(.live)
            let token = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)
            for phone in ["one", "two"] {
                var form = PushNotificationRegistration()
                (form.tokenType, form.deviceToken) = (.firebase, Secret("device".utf8))
                (form.installationID, form.accessToken) = (Secret(phone.utf8), token)
                (form.enabled, form.version, form.allowFromContactsOnly) = (true, 1, true)
                form.grant = Grant.sign(by: stranger, server: server, accessToken: token)
                form.allowedKeyList = (0..<2_300).map { _ in Secret(World.live.randomBytes(64)) }
                let box = StatusBox.seal(form.encoded(), from: stranger, to: server, .live)
                Self.publish(MetadataMessage.wrap(box, .registration, by: stranger), to: server, relay)
            }
            try await relay.statusReaches(2, "registered")
            let person = StatusHash.person(stranger.point)
            let query = PushNotificationQuery(publicKeys: [Secret](repeating: person, count: 64))
            try await relay.statusReaches(4, "topics")
            Self.publish(
                MetadataMessage.wrap(query.encoded(), .query, by: stranger), to: server,
                asking: .query(of: person), relay)
            try await relay.statusReaches(1, "queries")
            // Two answers to the registrations, and as many to the query as a node takes one by one.
            try await asked(for: "all of the answer") {
                try await relay.status("waku")?["published"]?.int64 ?? 0 >= 5
            }
            try await StatusMember.two(relay.stage) { bob, alice in
                let arrivals = relay.stage.apns.subscribe(token: bob.token)
                try await bob.register(at: [server])
                #expect(try await alice.tell(bob.point, "still there") == .delivered)
                #expect(try bob.text(try await arrivals.next("a push")) == "still there")
            }
        }
    }

    @Test("A reload without Google's service refuses its phones from then on, and one with it takes them")
    func reloaded() async throws {
        let with = RelayStage.status()
        let without = with.replacing("fcm: { service_account: fcm.json }", with: "")
        #expect(with != without)
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            try await StatusMember.with(relay.stage, .fcm) { carol in
                #expect(try await carol.register(at: [server]) == [.registered(server)])
                for (text, event) in [
                    (without, StatusInstallation.Event.refused(server, .unsupportedToken)),
                    (with, .registered(server))
                ] {
                    try relay.relay.reload(relay.stage.configuration(text))
                    carol.deviceToken = try .fcm("c:APA91b\(Hex.encode(World.live.randomBytes(32)))")
                    #expect(try await carol.register(at: [server]) == [event])
                }
            }
        }
    }
}
