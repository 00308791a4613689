import Foundation
import PushModel
import Testing
import WireFormats
import ZulipPush

/// What our device and our origin seal, written down for a foreign reader: `make interop` opens it with PyNaCl.
@Suite("What a foreign reader opens")
struct SealedForOthersTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// Base64 of the reader's public key, and the file to write.
    private static let reader = environment["SEALBELL_SEALED_FOR"]
    private static let file = environment["SEALBELL_SEALED_INTO"]
    private static let realmURL = "https://chat.example.org"

    @Test(
        "Registrations and notifications of every shape are sealed with fresh randomness and written",
        .enabled(if: reader != nil && file != nil, "make interop names a reader and a file"))
    func write() throws {
        let reader = try #require(Self.reader)
        let file = try #require(Self.file)
        var random = SystemRandomNumberGenerator()
        var device = ZulipRoutine(account: ZulipAccount(realmURL: Self.realmURL, userID: 7))
        let now = UnixTime(seconds: 1_800_000_000)
        device.tendKeys(now: now, using: &random)
        let held = try #require(device.newestKey)
        let phones: [(kind: TokenKind, token: String, app: String?)] = [
            (.apns, "B529DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D", "org.zulip.Zulip"),
            (.apns, String(repeating: "0f", count: 100), "a"), (.fcm, "x", nil),
            (.fcm, "cU3q:APA91b" + String(repeating: "Az_-09", count: 680), nil)
        ]
        var registrations: [JSONValue] = []
        var notifications: [JSONValue] = []
        for phone in phones {
            let token = DevicePushToken(kind: phone.kind, token: Secret(phone.token.utf8), appID: phone.app)
            let call = try device.register(
                ZulipDeviceState(), token: token, bouncerKey: reader, now: now, using: &random)
            let group = try #require(call?.token)
            let registration: JSONObject = [
                "kind": .string(phone.kind.rawValue), "token": .string(phone.token),
                "app": phone.app.map { .string($0) } ?? .null, "timestamp": Self.number(now.seconds),
                "sealed": .string(group.sealedRegistration.reveal { String(decoding: $0, as: UTF8.self) })
            ]
            registrations.append(.object(registration))
            let target = ZulipTarget(
                kind: phone.kind, tokenID: group.tokenID, pushKeyID: held.id, key: held.key)
            for (notification, content) in Self.contents {
                let row = try Self.sealed(notification, content, target, held, &random)
                notifications.append(.object(row))
            }
        }
        let told: JSONObject = [
            "registrations": .array(registrations), "notifications": .array(notifications)
        ]
        try Data(JSONValue.object(told).serialized()).write(to: URL(fileURLWithPath: file))
    }

    /// What the origin is given, and the members that its content must have for anyone who reads it.
    private static let contents: [(ZulipNotification, JSONObject)] = {
        let text = "żółw 🔔 日本 \"quoted\" \\ \u{1} end"
        let message = ZulipMessage(
            id: 9_007_199_254_740_991, time: 1_800_000_000, content: text, senderID: 8, senderName: "Iago",
            senderAvatarURL: realmURL + "/a.png",
            recipient: .channel(id: 3, name: "general", topic: "lunch?"))
        let frame: JSONObject = [
            "realm_url": .string(realmURL), "realm_name": .string("Chat"), "user_id": number(7)
        ]
        func with(_ members: JSONObject) -> JSONObject {
            var whole = frame
            for member in members.members { whole[member.name] = member.value }
            return whole
        }
        func notification(_ body: ZulipNotification.Body) -> ZulipNotification {
            ZulipNotification(realmURL: realmURL, realmName: "Chat", userID: 7, body: body)
        }
        return [
            (
                notification(.message(message)),
                with([
                    "type": .string("message"), "message_id": number(message.id),
                    "time": number(message.time),
                    "content": .string(text), "sender_id": number(8), "sender_full_name": .string("Iago"),
                    "sender_avatar_url": .string(message.senderAvatarURL),
                    "recipient_type": .string("channel"),
                    "channel_id": number(3), "channel_name": .string("general"), "topic": .string("lunch?")
                ])
            ),
            (
                notification(.remove([6, 5])),
                with(["type": .string("remove"), "message_ids": .array([number(5), number(6)])])
            ),
            (notification(.test(time: 1)), with(["type": .string("test"), "time": number(1)]))
        ]
    }()

    private static func sealed(
        _ notification: ZulipNotification, _ content: JSONObject, _ target: ZulipTarget, _ held: HeldPushKey,
        _ random: inout SystemRandomNumberGenerator
    ) throws -> JSONObject {
        let origin = ZulipOrigin.invent(version: "12.0", using: &random).origin
        let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
        let calls = try origin.notify(notification, to: [target], realm: realm, using: &random)
        let body = try #require(calls.first).body.reveal { Array($0) }
        let payload = try #require(
            JSONValue.parse(body, limitBytes: body.count)["push_requests"]?[0]?["payload"])
        return [
            "push_key": .string(held.key.base64.reveal { String(decoding: $0, as: UTF8.self) }),
            "encrypted_data": try #require(payload["encrypted_data"]), "content": .object(content)
        ]
    }

    private static func number(_ value: Int64) -> JSONValue { .number(JSONNumber(value)) }
}
