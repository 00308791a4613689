import Foundation
import ZulipPush

/// A phone and a Zulip server in one process: the phone registers, the server seals a message, the phone opens
/// it.
@main
struct ZulipApp {
    static let realmURL = "https://chat.example.org"
    static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"

    static func main() throws {
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        var random = SystemRandomNumberGenerator()
        var phone = AccountNotifications(realmURL: realmURL, userID: 7)
        guard
            let call = try phone.register(
                apnsToken: String(repeating: "b5", count: 32), server: ZulipDeviceState(), now: now),
            let key = call.key, let token = call.token
        else { throw Failure("a new phone has something to tell its server") }

        let (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
        let registration = origin.register(token, realm: realm)
        print("the server passes \(registration.body.count) sealed bytes on to \(registration.path)")

        let message = ZulipMessage(
            id: 5, time: now.seconds, content: "see you at nine", senderID: 8, senderName: "Iago",
            senderAvatarURL: realmURL + "/a.png", recipient: .direct(userIDs: [7, 8]))
        let target = ZulipTarget(
            kind: token.kind, tokenID: token.tokenID, pushKeyID: key.id, key: try PushKey(base64: key.key))
        let calls = try origin.notify(
            ZulipNotification(realmURL: realmURL, realmName: "Chat", userID: 7, body: .message(message)),
            to: [target], realm: realm, using: &random)

        // What the relay hands to Apple of it.
        guard let body = calls.first?.body, let push = try payload(of: body) else {
            throw Failure("there is one push")
        }
        // A phone that was restarted has the keys that it kept.
        let restarted = AccountNotifications(realmURL: realmURL, userID: 7, keys: phone.device.keys)
        guard let text = try restarted.text(pushKeyID: push.key, encryptedData: push.data) else {
            throw Failure("the message is for the screen")
        }
        print("the phone opens it: \(text)")
        guard text == "Iago: see you at nine" else { throw Failure("it says what was sent") }
        try expectForeign(push)
    }

    /// Another account's phone must not open it.
    private static func expectForeign(_ push: (key: UInt32, data: String)) throws {
        let stranger = AccountNotifications(realmURL: realmURL, userID: 9)
        do {
            _ = try stranger.text(pushKeyID: push.key, encryptedData: push.data)
        } catch let error as ZulipError {
            return print("another phone does not: \(error.sentence)")
        }
        throw Failure("another account's phone opened it")
    }

    private static func payload(of body: Secret) throws -> (key: UInt32, data: String)? {
        let json = try JSONSerialization.jsonObject(with: body.reveal { Data($0) }) as? [String: Any]
        let request = (json?["push_requests"] as? [[String: Any]])?.first
        guard let payload = request?["payload"] as? [String: Any],
            let key = payload["push_key_id"] as? NSNumber, let data = payload["encrypted_data"] as? String
        else { return nil }
        return (key.uint32Value, data)
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
