import PushModel
import Simulators
import WireFormats
import ZulipPush

/// A Zulip server of 12.x with one realm: it passes on to a relay what its apps register, and seals their
/// notifications.
struct DemoServer: Sendable {
    let origin: ZulipOrigin
    let key: Secret
    var realm: ZulipRealmReport
    var host: String
    var mail: String

    /// - Parameter relay: as in ``ZulipOrigin/init(id:key:version:relay:)``.
    init(
        _ host: String = "chat.acme.example", mail: String = "ops@acme.example", version: String = "12.0",
        relay: String = ""
    ) {
        var random = SystemRandomNumberGenerator()
        (origin, key) = ZulipOrigin.invent(version: version, relay: relay, using: &random)
        let uuid = UUIDText(version4From: random.next(), random.next()).text
        realm = ZulipRealmReport(
            id: 1, uuid: uuid, ownerSecret: "owner-secret", host: host, url: "https://\(host)", name: "Acme",
            createdAt: 1)
        (self.host, self.mail) = (host, mail)
    }

    /// By which a relay knows the server, and then its realm.
    var joining: (signUp: HTTPCall, realm: HTTPCall) {
        (origin.signUp(hostname: host, mail: mail), origin.analytics(realms: [realm]))
    }

    func register(_ app: DemoApp) -> HTTPCall { origin.register(app.registration, realm: realm.uuid) }

    /// Seals one notification for apps of one user.
    ///
    /// - Throws: `ZulipError` for what no relay takes.
    func notify(
        _ notification: ZulipNotification, _ apps: [DemoApp]
    ) throws(ZulipError) -> [HTTPCall] {
        var random = SystemRandomNumberGenerator()
        return try origin.notify(notification, to: apps.map(\.target), realm: realm.uuid, using: &random)
    }
}

/// An app on a phone, whose user is logged in at a Zulip server of 12.x: the kit's device, and what that
/// server knows of it.
struct DemoApp: Sendable {
    let device: ZulipDevice
    /// As the push service knows it.
    let token: String
    /// By which the relay knows it.
    var tokenID: TokenID
    /// What the server is to pass on.
    var registration: SealedRegistration
    let keyID: UInt32
    private let key: PushKey

    /// More than a registration takes: what the server can do, a device id, and the registration.
    private static let rounds = 5

    /// - Throws: `DeviceError` for what makes no login and for a token that no relay takes; `DemoFault` for a
    ///   device that registers in another way.
    init(
        _ token: DeviceToken, bouncerKey: String, bundle: String, realmURL: String, at now: UnixTime
    ) throws {
        let login = try ZulipLogin(
            realmURL: realmURL, userID: 7, email: "ada@example.org", apiKey: Secret("demo".utf8),
            relayKey: RelayKey(text: bouncerKey), bundleID: bundle, asksForEvents: .never)
        var device = try ZulipDevice(login)
        try device.use(token: token)
        var told: [String: String] = [:]
        for _ in 0..<Self.rounds {
            for call in device.due(at: now) {
                device.answered(Self.answer(call, &told), to: call, at: now)
            }
        }
        guard let tokenID = told["token_id"].flatMap({ TokenID($0) }),
            let kind = told["token_kind"].flatMap({ TokenKind(rawValue: $0) }),
            let known = told["bouncer_public_key"], let sealed = told["encrypted_push_registration"],
            let keyID = told["push_key_id"].flatMap(UInt32.init), let key = told["push_key"]
        else { throw DemoFault(words: "the device had nothing to register") }
        registration = SealedRegistration(
            .token(tokenID), kind: kind, bouncerKey: known, sealed: Secret(sealed.utf8))
        (self.device, self.token, self.tokenID, self.keyID) = (device, token.text.word, tokenID, keyID)
        self.key = try PushKey(base64: Secret(key.utf8))
    }

    /// The server's answer to a call of the device's, which tells it the fields of a form.
    private static func answer(_ call: Call, _ told: inout [String: String]) -> CallAnswer {
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

    var target: ZulipTarget {
        ZulipTarget(kind: registration.kind, tokenID: tokenID, pushKeyID: keyID, key: key)
    }

    /// To the app's user.
    func notification(_ body: ZulipNotification.Body) -> ZulipNotification {
        ZulipNotification(
            realmURL: device.login.realmURL, realmName: "Acme", userID: device.login.userID, body: body)
    }

    static func message(_ id: Int64, _ text: String) -> ZulipNotification.Body {
        .message(
            ZulipMessage(
                id: id, time: 1_800_000_000, content: text, senderID: 8, senderName: "Iago",
                senderAvatarURL: "https://chat.acme.example/a.png", recipient: .direct(userIDs: [7, 8])))
    }

    /// Opens what a push service delivered.
    ///
    /// - Returns: `nil` for a type that this version does not know.
    /// - Throws: `DeviceError` for what is not of this app.
    func open(_ delivery: Delivery, at now: UnixTime) throws(DeviceError) -> ZulipNotification? {
        try device.open(Delivered(json: Secret(delivery.body)), at: now).content
    }
}
