import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing

/// Device, origin and relay of this protocol exchange bytes in memory. Read this first.
@Suite("Nextcloud conversation", .timeLimit(.minutes(30)))
struct NextcloudPushConversationTests {
    private static let app = NextcloudApp(
        name: configured("acme-talk"), bundle: "org.acme.talk", hasVoIP: true, hasFCM: false)

    private func relay(web: (any WebFetch)? = nil) async throws -> NextcloudRelayRig {
        try await NextcloudRelayRig(apps: NextcloudApps([Self.app]), web: web)
    }

    private func message(_ relay: NextcloudRelayRig, _ place: Int) async throws -> APNsMessage {
        await relay.services.sent(atLeast: place + 1)
        return try #require(relay.services.sent[place].message.apns)
    }

    @Test(
        "A message goes through the relay to a phone that opens it, a call rings, and both go again"
    )
    func wholeWay() async throws {
        let relay = try await relay()
        try await relay.running { relay in
            var cloud = try CloudDouble()
            var phone = try PhoneDouble()
            // The phone tells the server a hash and a key, and the relay the token with the server's words.
            #expect(try await phone.register(&cloud, relay) == [200])
            #expect(cloud.rows.map(\.group) == [.talk])

            // The server seals a message for the phone; the relay adds the token and sends.
            let chat = try cloud.notify("Iago: see you at nine")
            #expect(try await cloud.flush(to: relay) == [.sent])
            let alert = try await message(relay, 0)
            #expect(alert.token == APNsMessage.canonical(Secret(PhoneDouble.alert.utf8)))
            #expect(alert.topic == "org.acme.talk")
            #expect(alert.pushType == .alert && alert.priority == 10)
            let payload = alert.payload.reveal { String(decoding: $0, as: UTF8.self) }
            #expect(!payload.contains("nine") && !payload.contains("spreed"))
            guard case .alert(let opened) = try phone.open(alert) else {
                Issue.record("an alert")
                return
            }
            #expect(opened.subject == "Iago: see you at nine" && opened.id == chat)
            #expect(opened.objectID == "t0k3n" && !opened.needsDetails)

            // A call goes to the other token.
            let call = try cloud.notify("Iago calls", type: "call")
            #expect(try await cloud.flush(to: relay) == [.sent])
            let ring = try await message(relay, 1)
            #expect(ring.token == APNsMessage.canonical(Secret(PhoneDouble.voip.utf8)))
            #expect(ring.topic == "org.acme.talk.voip")
            #expect(ring.pushType == .voip)
            guard case .alert(let rings) = try phone.open(ring) else {
                Issue.record("a call")
                return
            }
            #expect(rings.objectType == "call")

            // They were read elsewhere.
            try cloud.withdraw([chat, call])
            #expect(try await cloud.flush(to: relay) == [.sent])
            let withdrawal = try await message(relay, 2)
            #expect(withdrawal.pushType == .background && withdrawal.priority == 5)
            #expect(try phone.open(withdrawal) == .withdrawal([chat, call]))
        }
    }

    @Test(
        "A phone that knows everything sends nothing; told to, it registers anew and nothing changes"
    )
    func again() async throws {
        let relay = try await relay()
        try await relay.running { relay in
            var cloud = try CloudDouble()
            var phone = try PhoneDouble()
            #expect(try await phone.register(&cloud, relay) == [200])
            let row = cloud.rows
            #expect(try await phone.register(&cloud, relay).isEmpty)
            #expect(try await phone.register(&cloud, relay, .repair) == [200])
            #expect(cloud.rows == row)
        }
    }

    @Test(
        "A token that Apple refuses is told with the next push, and the phone comes back by itself"
    )
    func deadToken() async throws {
        let relay = try await relay()
        try await relay.running { relay in
            var cloud = try CloudDouble()
            var phone = try PhoneDouble()
            _ = try await phone.register(&cloud, relay)
            for token in [PhoneDouble.alert, PhoneDouble.voip] {
                relay.services.answer(token) { _ in
                    Answer(.unregistered(since: nil), .badDeviceToken, sentAt: NextcloudRelayRig.now)
                }
            }
            _ = try cloud.notify("lost")
            #expect(try await cloud.flush(to: relay) == [.sent])
            _ = try await message(relay, 0)
            await relay.store.ends(atLeast: 1)
            _ = try cloud.notify("not sent")
            #expect(try await cloud.flush(to: relay) == [.partlyFailed])
            #expect(cloud.rows.isEmpty)
            #expect(relay.services.sent.count == 1)

            // The phone's next start heals it.
            for token in [PhoneDouble.alert, PhoneDouble.voip] { relay.services.answer(token, by: nil) }
            #expect(try await phone.register(&cloud, relay, .repair) == [200])
            _ = try cloud.notify("hello again")
            #expect(try await cloud.flush(to: relay) == [.sent])
            guard case .alert(let opened) = try phone.open(try await message(relay, 1)) else {
                Issue.record("an alert")
                return
            }
            #expect(opened.subject == "hello again")
        }
    }

    @Test(
        "A server that was set up anew has another key for the same phone, and proves it")
    func reinstalled() async throws {
        let clouds = Noted<WebAnswer?>(nil)
        let web = ScriptedWeb { (request) throws(WebError) in
            guard let answer = clouds.value else { throw WebError(.unreachable) }
            return answer
        }
        let relay = try await relay(web: web)
        try await relay.running { relay in
            var cloud = try CloudDouble()
            var phone = try PhoneDouble()
            #expect(try await phone.register(&cloud, relay) == [200])
            try cloud.reinstall()
            // Nobody answers for the new key yet.
            await #expect(throws: NextcloudError(.refusedByProxy)) {
                try await phone.register(&cloud, relay, .repair)
            }
            // The instance is asked again after a while.
            relay.pass(NextcloudLimits.refusalLife)
            let proof = cloud.proof
            clouds.change { $0 = proof }
            #expect(try await phone.register(&cloud, relay, .repair) == [409, 200])
            #expect(
                web.requests.value.last?.url
                    == "https://cloud.example.org/ocs/v2.php/identityproof/key/alice?format=json")
            _ = try cloud.notify("from the new one")
            #expect(try await cloud.flush(to: relay) == [.sent])
            guard case .alert(let opened) = try phone.open(try await message(relay, 0)) else {
                Issue.record("an alert")
                return
            }
            #expect(opened.subject == "from the new one")
        }
    }

    @Test("An account that leaves is taken back at the server and at the relay, and nothing comes any more")
    func leaving() async throws {
        let relay = try await relay()
        try await relay.running { relay in
            var cloud = try CloudDouble()
            var phone = try PhoneDouble()
            _ = try await phone.register(&cloud, relay)
            // Sealed before the account left.
            _ = try cloud.notify("too late")
            #expect(try await phone.unregister(&cloud, relay) == [202, 200])
            #expect(cloud.rows.isEmpty)
            #expect(try await cloud.flush(to: relay) == [.partlyFailed])
            #expect(relay.services.sent.isEmpty)
        }
    }
}
