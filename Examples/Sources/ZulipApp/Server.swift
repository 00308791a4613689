import Foundation
import ZulipPush

/// A Zulip server of 12.x, as far as a phone calls it, and the relay behind it, which takes everything.
actor Server {
    static let realmURL = "https://chat.example.org"
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"

    /// What the phone has told, by its names.
    private(set) var told: [String: String] = [:]
    private(set) var heard: [String] = []
    private var isConfirmed = false

    func answer(_ call: Call) -> CallAnswer {
        guard let http = call.http, let url = URLComponents(string: http.url) else { return .none }
        heard.append("\(http.method) \(url.path)")
        let body: String
        switch heard.last {
        case "GET /api/v1/server_settings": body = #""zulip_feature_level":483"#
        case "POST /api/v1/register_client_device": body = #""device_id":41"#
        case "POST /api/v1/mobile_push/register":
            told.merge(Self.fields(http.body)) { $1 }
            body = #""msg":"""#
        case "POST /api/v1/register": body = #""queue_id":"q","last_event_id":-1,"devices":{\#(device)}"#
        case "GET /api/v1/events":
            isConfirmed = true
            body = #""events":[{"id":0,"type":"device","op":"update","device_id":41,\#(columns)}]"#
        case "POST /api/v1/remove_client_device":
            told = [:]
            body = #""msg":"""#
        default: body = #""msg":"""#
        }
        return .http(status: 200, body: Secret(#"{"result":"success",\#(body)}"#.utf8))
    }

    private var device: String { told.isEmpty ? "" : #""41":{\#(columns)}"# }

    /// The relay has taken the token once it stands in `push_token_id`.
    private var columns: String {
        let token = #""\#(told["token_id"] ?? "")""#
        return #""push_key_id":\#(told["push_key_id"] ?? "null"),"#
            + #""push_token_id":\#(isConfirmed ? token : "null"),"#
            + #""pending_push_token_id":\#(isConfirmed ? "null" : token),"#
            + #""push_token_last_updated_timestamp":\#(Int64(Date().timeIntervalSince1970)),"#
            + #""push_registration_error_code":null"#
    }

    private static func fields(_ form: Secret) -> [String: String] {
        var url = URLComponents()
        url.percentEncodedQuery = form.reveal { String(decoding: $0, as: UTF8.self) }
        let items = (url.queryItems ?? []).map { ($0.name, $0.value ?? "") }
        return Dictionary(items, uniquingKeysWith: { $1 })
    }

    /// What Apple delivers of a message that this server seals, as JSON.
    func seal(_ text: String) throws -> Data {
        guard let id = UInt32(told["push_key_id"] ?? ""), let tokenID = TokenID(told["token_id"] ?? "") else {
            throw Failure("the phone has registered")
        }
        var random = SystemRandomNumberGenerator()
        let (origin, _) = ZulipOrigin.invent(version: "12.0", using: &random)
        let message = ZulipMessage(
            id: 5, time: Int64(Date().timeIntervalSince1970), content: text, senderID: 8, senderName: "Iago",
            senderAvatarURL: Self.realmURL + "/a.png", recipient: .direct(userIDs: [7, 8]))
        let target = ZulipTarget(
            kind: .apns, tokenID: tokenID, pushKeyID: id,
            key: try PushKey(base64: Secret((told["push_key"] ?? "").utf8)))
        let calls = try origin.notify(
            ZulipNotification(realmURL: Self.realmURL, realmName: "Chat", userID: 7, body: .message(message)),
            to: [target], realm: Self.realm, using: &random)
        guard let body = calls.first?.body,
            let json = try JSONSerialization.jsonObject(with: body.reveal { Data($0) }) as? [String: Any],
            let request = (json["push_requests"] as? [[String: Any]])?.first,
            let payload = request["payload"]
        else { throw Failure("there is one push") }
        return try JSONSerialization.data(withJSONObject: payload)
    }
}
