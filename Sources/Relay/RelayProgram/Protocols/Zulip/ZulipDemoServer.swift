import PushModel
import WireFormats
import ZulipPush

/// The part of a Zulip server of 12.x that a phone calls when it registers.
struct ZulipDemoServer {
    /// What the phone has told, by its names.
    private var told: [String: String] = [:]

    /// More than a registration has.
    static let calls = 8

    var pushKeyID: UInt32? { told["push_key_id"].flatMap(UInt32.init) }
    var pushKey: Secret? { told["push_key"].map { Secret($0.utf8) } }

    /// What the server passes on to its relay; `nil` before the phone has told all of it.
    var registration: SealedRegistration? {
        guard let id = told["token_id"].flatMap({ TokenID($0) }),
            let kind = told["token_kind"].flatMap({ TokenKind(rawValue: $0) }),
            let key = told["bouncer_public_key"], let sealed = told["encrypted_push_registration"]
        else { return nil }
        return SealedRegistration(.token(id), kind: kind, bouncerKey: key, sealed: Secret(sealed.utf8))
    }

    mutating func answer(_ call: Call) -> CallAnswer {
        guard let http = call.http else { return .none }
        let body: String
        if http.url.hasSuffix("/server_settings") {
            body = #""zulip_feature_level":468"#
        } else if http.url.hasSuffix("/register_client_device") {
            body = #""device_id":1"#
        } else {
            // The device's own form; what is none tells nothing.
            let form = http.body.reveal { try? Form.parse($0) }
            for field in form?.fields ?? [] {
                told[field.name] = String(decoding: field.value, as: UTF8.self)
            }
            body = #""msg":"""#
        }
        return .http(status: 200, body: Secret(#"{"result":"success",\#(body)}"#.utf8))
    }
}
