import PushModel
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// A Zulip server with one realm, which speaks to a relay over HTTP.
struct TestServer: Sendable {
    let origin: ZulipOrigin
    let key: Secret
    var realm: ZulipRealmReport
    var host: String
    var mail: String

    init(_ host: String = "chat.acme.example", mail: String = "ops@acme.example", version: String = "12.0") {
        var random = SystemRandomNumberGenerator()
        (origin, key) = ZulipOrigin.invent(version: version, using: &random)
        let uuid = UUIDText(version4From: random.next(), random.next()).text
        realm = ZulipRealmReport(
            id: 1, uuid: uuid, ownerSecret: "owner-secret", host: host, url: "https://\(host)", name: "Acme",
            createdAt: 1)
        self.host = host
        self.mail = mail
    }

    /// Signs up and says which realm it has.
    func join(_ relay: RunningRelay, _ listener: String = "public") async throws {
        let signedUp = try await relay.ask(origin.signUp(hostname: host, mail: mail), listener)
        #expect(signedUp.status == 200)
        let known = try await relay.ask(origin.analytics(realms: [realm]), listener)
        #expect(known.json["realms"]?[realm.uuid]?["can_push"]?.bool == true)
    }

    /// Passes a phone's registration on.
    func register(
        _ phone: TestPhone, _ relay: RunningRelay, _ listener: String = "public"
    ) async throws -> TestAnswer {
        try await relay.ask(origin.register(phone.group, realm: realm.uuid), listener)
    }

    /// Seals one notification for phones and hands it over.
    func notify(
        _ body: ZulipNotification.Body, _ phones: [TestPhone], _ relay: RunningRelay,
        _ listener: String = "public"
    ) async throws -> TestAnswer {
        var random = SystemRandomNumberGenerator()
        let notification = TestPhone.notification(body, phones[0].account)
        let calls = try origin.notify(
            notification, to: phones.map(\.target), realm: realm.uuid, using: &random)
        return try await relay.ask(try #require(calls.first), listener)
    }
}

/// An app on a phone.
struct TestPhone: Sendable {
    static let realmURL = "https://chat.acme.example"
    let account = ZulipAccount(realmURL: TestPhone.realmURL, userID: 7)
    let device: ZulipRoutine
    /// As the push service knows it.
    let token: String
    let kind: TokenKind
    let group: DeviceRegistrationCall.TokenGroup

    init(
        _ kind: TokenKind, _ bouncerKey: String, token: String? = nil, bundle: String = "org.acme.chat"
    ) throws {
        var random = SystemRandomNumberGenerator()
        var device = ZulipRoutine(account: account)
        let now = World.live.now()
        device.tendKeys(now: now, using: &random)
        let made = token ?? Self.token(kind)
        let push = DevicePushToken(
            kind: kind, token: Secret(made.utf8), appID: kind == .apns ? bundle : nil)
        let call = try device.register(
            ZulipDeviceState(), token: push, bouncerKey: bouncerKey, now: now, using: &random)
        group = try #require(call?.token)
        self.device = device
        self.token = made
        self.kind = kind
    }

    static func token(_ kind: TokenKind) -> String {
        let random = Hex.encode((0..<32).map { _ in UInt8.random(in: .min ... .max) })
        return kind == .apns ? random : "cB7_\(random):APA91b\(random)"
    }

    var target: ZulipTarget {
        let key = device.newestKey
        precondition(key != nil, "a phone has made its key")
        return ZulipTarget(kind: kind, tokenID: group.tokenID, pushKeyID: key!.id, key: key!.key)
    }

    static func notification(_ body: ZulipNotification.Body, _ account: ZulipAccount) -> ZulipNotification {
        ZulipNotification(realmURL: account.realmURL, realmName: "Acme", userID: account.userID, body: body)
    }

    static func message(_ id: Int64, _ text: String) -> ZulipNotification.Body {
        .message(
            ZulipMessage(
                id: id, time: 1_800_000_000, content: text, senderID: 8, senderName: "Iago",
                senderAvatarURL: "https://chat.acme.example/a.png", recipient: .direct(userIDs: [7, 8])))
    }

    /// Opens what a push service delivered.
    func open(_ delivery: Delivery) throws -> ZulipNotification {
        let body = try JSONValue.parse(delivery.body)
        // FCM: every value of `data` is a string.
        let fields = kind == .apns ? body : try #require(body["message"]?["data"])
        let member = fields["push_key_id"]
        let id = try #require(member?.uint32 ?? member?.string.flatMap { UInt32($0) })
        let sealed = try #require(fields["encrypted_data"]?.string)
        let opened = try device.open(pushKeyID: id, encryptedData: Secret(sealed.utf8))
        return try #require(opened)
    }
}

/// An answer of the relay.
struct TestAnswer: Sendable {
    let status: Int
    let body: [UInt8]
    let json: JSONValue
    let headers: [(name: String, value: String)]

    var apple: Int64? { json["apple_successfully_sent_count"]?.int64 }
    var android: Int64? { json["android_successfully_sent_count"]?.int64 }
    var dead: [String] { json["delete_token_ids"]?.array?.compactMap(\.string) ?? [] }
    var code: String? { json["code"]?.string }
}

extension RunningRelay {
    func ask(
        _ call: HTTPCall, _ listener: String = "public", authority: String? = nil,
        headers: [(name: String, value: Secret)] = []
    ) async throws -> TestAnswer {
        let answer = try await door(listener, authority: authority).ask(
            call.method, call.url, headers: call.headers + headers,
            body: call.method == "GET" ? nil : call.body)
        // Not every refusal is JSON; `null` has no members.
        let json = (try? JSONValue.parse(answer.body)) ?? .null
        return TestAnswer(status: answer.status, body: answer.body, json: json, headers: answer.headers)
    }

    /// A server that has joined.
    func server(_ host: String = "chat.acme.example") async throws -> TestServer {
        let server = TestServer(host)
        try await server.join(self)
        return server
    }

    /// A phone that the server has registered.
    func phone(_ kind: TokenKind, of server: TestServer, token: String? = nil) async throws -> TestPhone {
        let phone = try TestPhone(kind, bouncerKey, token: token)
        #expect(try await server.register(phone, self).status == 200)
        return phone
    }
}
