import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Device, origin and relay of this protocol exchange bytes in memory. Read this first.
@Suite("Zulip conversation", .timeLimit(.minutes(30)))
struct ZulipPushConversationTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let token = Secret("B529DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D".utf8)

    @Test(
        "A notification goes from an origin through the relay to a device that opens it")
    func wholeWay() async throws {
        let pair = try X25519KeyPair(privateKey: Secret((0..<32).map { UInt8($0) }))
        let relay = try await TestRelay(now: Self.now, pairs: [pair])
        try await relay.running { relay in
            var random = SeededRandom(seed: 12)
            // A server signs up and says which realm it has.
            let (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
            #expect(
                await relay.ask(origin.signUp(hostname: "chat.example.org", mail: "a@example.org")).status
                    == 200)
            let report = ZulipRealmReport(
                id: 1, uuid: Self.realm, ownerSecret: "s", host: "chat.example.org",
                url: "https://chat.example.org",
                name: "Chat", createdAt: 1)
            let known = await relay.ask(origin.analytics(realms: [report]))
            #expect(known.json["realms"]?[Self.realm]?["can_push"]?.bool == true)

            // A phone makes a key and seals its token to the relay; the server passes the box on.
            var device = ZulipRoutine(account: ZulipAccount(realmURL: "https://chat.example.org", userID: 7))
            device.tendKeys(now: Self.now, using: &random)
            let phone = DevicePushToken(kind: .apns, token: Self.token, appID: "org.zulip.Zulip")
            let call = try device.register(
                ZulipDeviceState(), token: phone, bouncerKey: Base64.text(pair.publicKey), now: Self.now,
                using: &random)
            let group = try #require(call?.token)
            let key = try #require(call?.key)
            let registration = SealedRegistration(
                .token(group.tokenID), kind: .apns, bouncerKey: group.bouncerKey,
                sealed: group.sealedRegistration)
            #expect(await relay.ask(origin.register(registration, realm: Self.realm)).status == 200)

            // The server seals a message with the phone's key.
            let message = ZulipMessage(
                id: 5, time: 1_800_000_000, content: "see you at nine", senderID: 8, senderName: "Iago",
                senderAvatarURL: "https://chat.example.org/a.png", recipient: .direct(userIDs: [7, 8]))
            let target = ZulipTarget(
                kind: .apns, tokenID: group.tokenID, pushKeyID: key.id, key: try PushKey(base64: key.key))
            let notification = ZulipNotification(
                realmURL: "https://chat.example.org", realmName: "Chat", userID: 7, body: .message(message))
            let calls = try origin.notify(notification, to: [target], realm: Self.realm, using: &random)
            let answer = await relay.ask(try #require(calls.first))
            let counts = try ZulipOrigin.notifyAnswer(Secret(answer.json.serialized()))
            #expect(counts.apple == 1)
            #expect(counts.deadTokenIDs.isEmpty)

            // Apple delivers; the phone opens.
            let sent = try #require(relay.services.sends.first)
            #expect(
                sent["path"]?.string?.hasSuffix(
                    "/B529DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D") == true)
            let opened = try device.open(
                pushKeyID: try #require(sent["body"]?["push_key_id"]?.uint32),
                encryptedData: Secret(try #require(sent["body"]?["encrypted_data"]?.string).utf8))
            #expect(opened == notification)
            #expect(!String(decoding: sent.serialized(), as: UTF8.self).contains("nine"))
        }
    }

    @Test(
        "A dead token is reported once, expires, and comes back with a newer registration")
    func deadToken() async throws {
        let bench = try await RealmRig(now: Self.now)
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: Self.now.seconds)
            relay.services.answer("ab12", with: StubServices.Upstream(status: 410, word: "Unregistered"))
            let first = await bench.notify([id])
            #expect(first.json["delete_token_ids"]?[0]?.string == id.text)
            #expect(first.json["apple_successfully_sent_count"]?.int64 == 0)
            let second = await bench.notify([id])
            #expect(second.json["delete_token_ids"]?[0]?.string == id.text)
            await relay.services.sends(atLeast: 1)
            #expect(relay.services.sends.count == 1)
            // The same blob again changes nothing; one made a second later revives.
            _ = try await bench.register("ab12", timestamp: Self.now.seconds)
            #expect(await bench.notify([id]).json["delete_token_ids"]?.array?.count == 1)
            _ = try await bench.register("ab12", timestamp: Self.now.seconds + 1)
            // Another ciphertext, since the same one would be a repeat of the push that was refused.
            _ = await bench.notify(raw: RealmRig.body([RealmRig.item(id.text, data: "QUJE")]))
            await relay.services.sends(atLeast: 2)
            #expect(relay.services.sends.count == 2)
        }
    }
}
