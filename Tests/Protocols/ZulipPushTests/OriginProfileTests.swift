import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What an origin sends in each profile, and that no call has two of them (docs/conformance/zulip.md).
@Suite("Zulip origin: profiles")
struct OriginProfileTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"

    private let origin = ZulipOrigin(
        id: "1c29d774-2414-40cc-a7d1-4fb445cf9726", key: Secret(String(repeating: "k", count: 64).utf8),
        version: "12.0")

    @Test("Devices of three profiles get a call each, and one that is not confirmed gets none")
    func mixed() throws {
        var random = SeededRandom(seed: 1)
        let pair = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 5, count: 32)))
        let recipient = try PushPublicKey(base64: Base64.text(pair.publicKey))
        let key = try pushKey(3)
        let targets = [
            ZulipTarget(deviceID: 7, key: recipient), ZulipTarget(deviceID: nil, key: recipient),
            ZulipTarget(kind: .fcm, deviceID: .max, accountID: .min, key: key),
            ZulipTarget(kind: .apns, deviceID: nil, accountID: 1, key: key),
            ZulipTarget(kind: .apns, tokenID: TokenID(9), pushKeyID: .max, key: key),
            ZulipTarget(deviceID: 8, key: recipient)
        ]
        let calls = try origin.notify(Self.test, to: targets, realm: Self.realm, using: &random)
        let items = try calls.map { call in
            try #require(JSONValue.parse(call.body.reveal { Array($0) })["push_requests"]?.array)
        }
        #expect(items.map(\.count) == [1, 2, 1])
        #expect(items[0][0]["token_id"]?.string == TokenID(9).text)
        #expect(items[0][0]["payload"]?["push_key_id"]?.int64 == Int64(UInt32.max))
        #expect(items[1].map { $0["device_id"]?.int64 } == [7, 8])
        #expect(items[1].allSatisfy { $0.object?.names == ["device_id", "encrypted_content", "priority"] })
        #expect(items[2][0]["device_id"]?.int64 == .max)
        #expect(items[2][0]["payload"]?["push_account_id"]?.int64 == .min)
        // Each box has an ephemeral key of its own, and the same content.
        let boxes = try items[1].map { try Base64.decode(try #require($0["encrypted_content"]?.string)) }
        #expect(boxes[0].prefix(32) != boxes[1].prefix(32))
        let opened = try boxes.map { try SealedBox.open($0, with: pair) }
        #expect(opened[0] == opened[1])
        let skipped = try origin.notify(
            Self.test, to: [targets[1], targets[3]], realm: Self.realm, using: &random)
        #expect(skipped.isEmpty)
    }

    @Test(
        "A thousand devices of the largest content go in calls that a relay takes",
        arguments: ZulipProfile.allCases)
    func largest(_ profile: ZulipProfile) throws {
        var random = SeededRandom(seed: 2)
        let pair = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 5, count: 32)))
        let recipient = try PushPublicKey(base64: Base64.text(pair.publicKey))
        let key = try pushKey(3)
        let target: ZulipTarget =
            switch profile {
            case .v12: ZulipTarget(kind: .apns, tokenID: TokenID(.max), pushKeyID: .max, key: key)
            case .v11: ZulipTarget(kind: .apns, deviceID: .max, accountID: .min, key: key)
            case .zap: ZulipTarget(deviceID: .max, key: recipient)
            }
        func calls(_ bytes: Int, _ count: Int) throws -> [HTTPCall] {
            let message = ZulipMessage(
                id: 1, time: 1, content: "", senderID: 1,
                senderName: String(repeating: "n", count: bytes), senderAvatarURL: "",
                recipient: .direct(userIDs: [1]))
            let notification = ZulipNotification(
                realmURL: "https://a.example", realmName: nil, userID: 7, body: .message(message))
            return try origin.notify(
                notification, to: Array(repeating: target, count: count), realm: Self.realm, using: &random)
        }
        // The largest that is taken, by halving.
        var (fits, fails) = (1_000, 4_000)
        while fails - fits > 1 {
            let middle = (fits + fails) / 2
            do throws(ZulipError) {
                _ = try Self.typed { try calls(middle, 1) }
                fits = middle
            } catch {
                #expect(error.code == .tooMuchContent)
                fails = middle
            }
        }
        let made = try calls(fits, 1_000)
        #expect(made.allSatisfy { $0.body.count <= ZulipLimits.notifyBodyBytes })
        var items = 0
        for call in made {
            let body = try JSONValue.parse(call.body.reveal { Array($0) }, limitBytes: 8 << 20)
            items += body["push_requests"]?.array?.count ?? 0
            for item in body["push_requests"]?.array ?? [] {
                if let sealed = item["encrypted_content"]?.string {
                    #expect((3_797...3_800).contains(sealed.utf8.count))
                } else {
                    // What Apple gets is the item's payload, with the id as it stands.
                    let bytes = item["payload"]?.serialized().count ?? 0
                    #expect((4_093...4_096).contains(bytes), "\(bytes)")
                }
            }
        }
        #expect(items == 1_000 && made.count == (profile == .zap ? 1 : 2))
    }

    @Test("A registration is passed on in the form of its name")
    func register() throws {
        func fields(_ name: SealedRegistration.Name) throws -> [String] {
            let sealed = SealedRegistration(
                name, kind: .fcm, bouncerKey: "a+b/c=", sealed: Secret("YWJj+/==".utf8))
            let call = origin.register(sealed, realm: Self.realm)
            #expect(call.method == "POST" && call.url == "/api/v1/remotes/push/e2ee/register")
            return try Form.parse(call.body.reveal { Array($0) }).fields.map {
                $0.name + "=" + String(decoding: $0.value, as: UTF8.self)
            }
        }
        let rest = ["encrypted_push_registration=YWJj+/==", "bouncer_public_key=a+b/c="]
        #expect(
            try fields(.account(.min)) == [
                "realm_uuid=\(Self.realm)", "push_account_id=-9223372036854775808", rest[0], rest[1],
                "token_kind=fcm"
            ])
        #expect(
            try fields(.token(TokenID(1))) == [
                "realm_uuid=\(Self.realm)", "token_id=AAAAAAAAAAE=", rest[0], rest[1]
            ])
    }

    @Test("The stale list is asked for by page")
    func stale() {
        let path = "/api/v1/remotes/push/e2ee/stale_devices?realm_uuid=\(Self.realm)"
        let first = origin.staleDevices(realm: Self.realm)
        #expect(first.method == "GET" && first.url == path && first.body.count == 0)
        #expect(first.headers.map(\.name) == ["User-agent", "Authorization"])
        #expect(
            origin.staleDevices(realm: Self.realm, after: .max).url == path + "&after=9223372036854775807")
        #expect(origin.staleDevices(realm: Self.realm, after: 5, limit: 2).url == path + "&after=5&limit=2")
    }

    @Test("Plaintext may be sent only where neither server nor realm requires encryption")
    func legacy() {
        #expect(ZulipOrigin.mayUseLegacy(serverRequires: false, realmRequires: false))
        #expect(!ZulipOrigin.mayUseLegacy(serverRequires: true, realmRequires: false))
        #expect(!ZulipOrigin.mayUseLegacy(serverRequires: false, realmRequires: true))
        #expect(!ZulipOrigin.mayUseLegacy(serverRequires: true, realmRequires: true))
    }

    @Test("A server says which profiles it speaks by its level and by the specification's own member")
    func settings() throws {
        func said(_ profiles: Set<ZulipProfile>) throws -> (Int64?, Bool?) {
            let settings = OriginSettings(
                version: "12.0", realmURL: "https://a.example", realmName: "A \"é\"", hasRelay: true,
                profiles: profiles)
            let json = try JSONValue.parse(settings.body())
            #expect(json["result"]?.string == "success" && json["realm_name"]?.string == "A \"é\"")
            #expect(json["push_notifications_enabled"]?.bool == true)
            return (json["zulip_feature_level"]?.int64, json["encrypted_push_notifications"]?.bool)
        }
        #expect(try said([.v12, .zap, .v11]) == (483, true))
        #expect(try said([.v12]) == (483, false) && said([.v11]) == (467, false))
        #expect(try said([.zap]) == (405, true))
        // As the vectors have it.
        let expected = try ZulipVectorTests.main.get()?.json["zap_settings"]?["server_settings_answer"]?[
            "holds"]
        let settings = OriginSettings(
            version: "12.0", realmURL: "https://a.example", realmName: "A", hasRelay: true)
        let json = try JSONValue.parse(settings.body())
        for (name, value) in expected?.object?.members ?? [] { #expect(json[name] == value, "\(name)") }
    }

    // MARK: parts

    private static let test = ZulipNotification(
        realmURL: "https://chat.example.org", realmName: nil, userID: 7, body: .test(time: 9))

    private func pushKey(_ byte: UInt8) throws -> PushKey {
        try PushKey(base64: Secret(Base64.encode([0x31] + [UInt8](repeating: byte, count: 32))))
    }

    private static func typed<Result>(_ body: () throws -> Result) throws(ZulipError) -> Result {
        do { return try body() } catch let error as ZulipError { throw error } catch {
            Issue.record(error)
            throw ZulipError(.malformedAnswer)
        }
    }
}
