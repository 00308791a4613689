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
        let marker = ZulipRoutine.newMarker(using: &random)
        var phone = AccountNotifications(realmURL: realmURL, userID: 7)

        // A server of 12.x: a device first, then its key and its token.
        let asked = try phone.start(
            serverSettings: Secret(#"{"zulip_feature_level":483}"#.utf8),
            apnsToken: String(repeating: "b5", count: 32), marker: marker, now: now)
        let device = try call(asked)
        print("the phone calls \(device.path)")
        let registration = try call(
            phone.take(answer(device, #"{"result":"success","msg":"","device_id":41}"#), now: now))
        print("the phone calls \(registration.path) with \(registration.body.count) bytes")
        let later = try phone.take(answer(registration, #"{"result":"success","msg":""}"#), now: now)
        guard later.contains(where: { if case .timer = $0 { true } else { false } }) else {
            throw Failure("the phone looks again after five minutes")
        }

        // The relay has taken what the server passed on: the server shows it.
        let tokenID = try text(registration, "token_id")
        let update =
            #"{"type":"device","op":"update","device_id":41,"push_token_id":"\#(tokenID)","#
            + #""pending_push_token_id":null}"#
        _ = try phone.take(.events(Secret(update.utf8)), now: now)
        print("the account is \(ZulipRoutine.status(of: phone.device, now: now).state.rawValue)")

        let push = try seal(registration, now: now, using: &random)
        // A phone that was restarted has what it kept.
        let restarted = try AccountNotifications(kept: phone.device.encoded())
        guard
            let text = try AccountNotifications.text(delivered: push, accounts: [restarted], now: now)
        else { throw Failure("the message is for the screen") }
        print("the phone opens it: \(text)")
        guard text == "Iago: see you at nine" else { throw Failure("it says what was sent") }
        try expectForeign(push, now: now)
    }

    // MARK: the server's part

    /// What Apple delivers of a message that the server seals.
    private static func seal(
        _ registration: ZulipDeviceCall, now: UnixTime, using random: inout SystemRandomNumberGenerator
    ) throws -> Secret {
        guard let id = UInt32(try text(registration, "push_key_id")),
            let tokenID = TokenID(try text(registration, "token_id"))
        else { throw Failure("the ids are ids") }
        let (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
        let message = ZulipMessage(
            id: 5, time: now.seconds, content: "see you at nine", senderID: 8, senderName: "Iago",
            senderAvatarURL: realmURL + "/a.png", recipient: .direct(userIDs: [7, 8]))
        let target = ZulipTarget(
            kind: .apns, tokenID: tokenID, pushKeyID: id,
            key: try PushKey(base64: Secret(try text(registration, "push_key").utf8)))
        let calls = try origin.notify(
            ZulipNotification(realmURL: realmURL, realmName: "Chat", userID: 7, body: .message(message)),
            to: [target], realm: realm, using: &random)
        guard let body = calls.first?.body,
            let json = try JSONSerialization.jsonObject(with: body.reveal { Data($0) }) as? [String: Any],
            let request = (json["push_requests"] as? [[String: Any]])?.first, let payload = request["payload"]
        else { throw Failure("there is one push") }
        return Secret(try JSONSerialization.data(withJSONObject: payload))
    }

    private static func answer(_ call: ZulipDeviceCall, _ body: String) -> ZulipDeviceEvent {
        .answer(call: call.number, ZulipDeviceAnswer(status: 200, body: Secret(body.utf8)))
    }

    private static func call(_ actions: [ZulipDeviceAction]) throws -> ZulipDeviceCall {
        for case .call(let call) in actions { return call }
        throw Failure("there is something to tell the server")
    }

    private static func text(_ call: ZulipDeviceCall, _ name: String) throws -> String {
        guard let field = call.fields.first(where: { $0.name == name }) else {
            throw Failure("the form has \(name)")
        }
        return field.value.reveal { String(decoding: $0, as: UTF8.self) }
    }

    /// Another account's phone must not open it.
    private static func expectForeign(_ push: Secret, now: UnixTime) throws {
        let stranger = AccountNotifications(realmURL: realmURL, userID: 9)
        do {
            _ = try AccountNotifications.text(delivered: push, accounts: [stranger], now: now)
        } catch let error as ZulipError {
            return print("another phone does not: \(error.sentence)")
        }
        throw Failure("another account's phone opened it")
    }
}

/// What should have been so and was not; ends the program with a status other than 0.
struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}
