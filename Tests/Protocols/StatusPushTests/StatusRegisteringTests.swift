import Primitives
import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@Suite("Registering at a Status relay", .timeLimit(.minutes(30)))
struct StatusRegisteringTests {
    static let server = samplePair(1)
    static let client = samplePair(2)
    static let person = StatusHash.person(client.point)
    private static let token = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)

    private static func registration(
        _ version: UInt64, installation: String = "phone"
    ) -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = .firebase
        registration.deviceToken = Secret("device".utf8)
        registration.installationID = Secret(installation.utf8)
        registration.accessToken = token
        registration.enabled = true
        registration.version = version
        registration.grant = Grant.sign(by: client, server: server.point, accessToken: token)
        return registration
    }

    private static func end(_ version: UInt64, installation: String = "phone") -> PushNotificationRegistration
    {
        var registration = PushNotificationRegistration()
        registration.installationID = Secret(installation.utf8)
        registration.version = version
        registration.unregister = true
        return registration
    }

    private func send(
        _ registration: PushNotificationRegistration, _ rig: StatusRig
    ) async throws -> PushNotificationRegistrationResponse {
        let box = StatusBox.seal(registration.encoded(), from: Self.client, to: Self.server.point, rig.world)
        let reply = await rig.receive(MetadataMessage.wrap(box, .registration, by: Self.client))
        guard case .registration(let response)? = reply?.body else { throw StatusError(.malformedMessage) }
        #expect(response.requestID == Secret(SHAKE256.hash64(box)))
        return response
    }

    private func accepts(
        _ registration: PushNotificationRegistration, _ rig: StatusRig, at: SourceLocation = #_sourceLocation
    ) async throws {
        let response = try await send(registration, rig)
        #expect(response.success, sourceLocation: at)
    }

    private func outdates(
        _ registration: PushNotificationRegistration, _ rig: StatusRig, at: SourceLocation = #_sourceLocation
    ) async throws {
        let response = try await send(registration, rig)
        #expect(!response.success && response.error == .versionMismatch, sourceLocation: at)
    }

    @Test("the last version of 64 bits is taken, and nothing above it")
    func edges() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            try await accepts(Self.registration(.max - 1), rig)
            try await accepts(Self.registration(.max), rig)
            try await outdates(Self.registration(.max), rig)
            let version = try await rig.version(of: Self.person, installation: Secret("phone".utf8))
            #expect(version == .max)
        }
    }

    @Test("unregistering leaves a version under a hash, and nothing of the person")
    func forgetting() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            try await accepts(Self.registration(3), rig)
            try await accepts(Self.end(4), rig)
            let records = try await rig.records()
            #expect(records.count == 1 && records[0].state == .tombstone && records[0].version == 4)
            #expect(records[0].body.count == 0 && records[0].owner == nil && records[0].address == nil)
            let followed = try await self.followed(rig)
            #expect(followed.isEmpty)
            // What was registered before does not come again.
            try await outdates(Self.registration(4), rig)
            try await accepts(Self.registration(5), rig)
        }
    }

    @Test("unregistering on first contact keeps older registrations away")
    func firstContact() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            try await accepts(Self.end(7), rig)
            try await outdates(Self.registration(6), rig)
        }
    }

    @Test("topics are followed as long as one installation is registered")
    func topics() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            try await accepts(Self.registration(1), rig)
            try await accepts(Self.registration(1, installation: "tablet"), rig)
            try await accepts(Self.end(2), rig)
            let followed = try await self.followed(rig)
            #expect(followed.count == 2)
            let topic = WakuTopic.query(of: Self.person)
            #expect(followed.contains { $0.id == topic.id && $0.key == TopicKey.derive(from: topic) })
            try await accepts(Self.end(2, installation: "tablet"), rig)
            let left = try await self.followed(rig)
            #expect(left.isEmpty)
        }
    }

    @Test(
        "a device token has a length and visible letters; beyond, it is malformed", arguments: [true, false])
    func tokens(isApple: Bool) async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let most = isApple ? StatusLimits.appleTokenBytes : StatusLimits.deviceTokenBytes
            let letter = String(repeating: "a", count: most - 1)
            // Deployed servers take any letters; the first push ends what Apple would not know.
            let good = ["a", "second-3a6b350d", letter + "b"]
            let bad = ["", letter + "bc", "a b", "a\n", "a\0", "\u{e9}", "a\u{7f}"]
            for (number, token) in (bad + good).enumerated() {
                var registration = Self.registration(1, installation: "\(number)")
                registration.tokenType = isApple ? .apn : .firebase
                registration.apnTopic = Secret((isApple ? "org.example" : "").utf8)
                registration.deviceToken = Secret(token.utf8)
                let response = try await send(registration, rig)
                #expect(response.success == (number >= bad.count), "\(number)")
                if !response.success { #expect(response.error == .malformedMessage) }
            }
            let records = try await rig.records()
            #expect(records.count == good.count, "what is refused changes nothing")
        }
    }

    @Test("what no service of the instance takes is refused, and is taken once one does")
    func served() async throws {
        @Sendable func apple(_ topic: String) -> PushNotificationRegistration {
            var registration = Self.registration(1)
            registration.tokenType = .apn
            registration.apnTopic = Secret(topic.utf8)
            return registration
        }
        let app = try #require(ConfiguredName("acme"))
        let rows: [(topics: Set<String>?, fcm: ConfiguredName?, ours: Bool, other: Bool, google: Bool)] = [
            (["org.acme"], app, true, false, true), (["org.acme"], nil, true, false, false),
            ([], app, false, false, true), ([], nil, false, false, false), (nil, nil, true, true, true)
        ]
        for row in rows {
            for compatibility in [StatusPolicy.Compatibility.standard, .statusGo] {
                let policy = StatusPolicy(
                    compatibility: compatibility, fcmApp: row.fcm, servedTopics: row.topics)
                try await StatusRig(identity: Self.server, policy: policy).running { rig in
                    let cases = [
                        (apple("org.acme"), row.ours), (apple("org.other"), row.other),
                        (Self.registration(1), row.google)
                    ]
                    for (number, (registration, isTaken)) in cases.enumerated() {
                        var registration = registration
                        registration.installationID = Secret(
                            "a6712c96-9eb0-4df5-bc7c-041602a28ea\(number)".utf8)
                        let response = try await send(registration, rig)
                        #expect(response.success == isTaken, "\(row) \(number)")
                        if !isTaken { #expect(response.error == .unsupportedTokenType) }
                    }
                    let records = try await rig.records()
                    #expect(records.count == cases.count { $0.1 }, "what is refused changes nothing")
                }
            }
        }
    }

    @Test("a store that is out is an internal error, and nothing is written")
    func storeOut() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let box = StatusBox.seal(
            Self.registration(1).encoded(), from: Self.client, to: Self.server.point, rig.world)
        let message = try MetadataMessage(reading: MetadataMessage.wrap(box, .registration, by: Self.client))
        let inbound = try #require(try StatusInbound(message))
        let reply = rig.relay.reply(to: inbound, refusing: StatusError(.overloaded))
        guard case .registration(let response)? = reply?.body else {
            Issue.record("no answer")
            return
        }
        #expect(!response.success && response.error == .internalError)
        let records = try await rig.records()
        #expect(records.isEmpty)
    }

    private func followed(_ rig: StatusRig) async throws -> [FollowedTopic] {
        let topics = [WakuTopic.query(of: Self.person), WakuTopic.prefixedQuery(of: Self.person)]
        var found: [FollowedTopic] = []
        for topic in topics {
            found += try await rig.store.page(
                .owner(rig.relay.keys.topics(sharing: topic.id)), after: 0, limit: 10
            ).compactMap { FollowedTopic($0) }
        }
        return found
    }
}
