import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// A relay with one server and one realm, and short ways to ask it.
struct RealmRig: Sendable {
    static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    static let server = "1c29d774-2414-40cc-a7d1-4fb445cf9726"
    static let key = String(repeating: "k", count: 64)

    let relay: TestRelay
    let pair: X25519KeyPair
    let now: UnixTime

    init(
        now: UnixTime = UnixTime(seconds: 1_800_000_000), admission: ZulipAdmission = .open,
        web: (any WebFetch)? = nil, mailDomains: (any MailDomains)? = nil,
        fallbacks: FallbackAlerts = FallbackAlerts([:]), rows: Int = 10_000,
        bounds: ZulipBounds = ZulipBounds()
    ) async throws {
        self.now = now
        pair = try X25519KeyPair(privateKey: Secret((0..<32).map { UInt8($0) }))
        relay = try await TestRelay(
            now: now, pairs: [pair], admission: admission, web: web, mailDomains: mailDomains,
            fallbacks: fallbacks, rows: rows, bounds: bounds)
        guard admission == .open, mailDomains == nil else { return }
        try #require(await signUp(Self.server, host: "chat.example.org").status == 200)
        try #require(await reportRealm(Self.realm, by: Self.server).status == 200)
    }

    /// Whoever has signed up, as the operator sees them.
    var servers: ZulipServers { ZulipServers(TestRelay.instance, relay.store, world: relay.world) }

    static func basic(_ id: String, _ key: String = RealmRig.key) -> String {
        "Basic " + Base64.text(Array("\(id):\(key)".utf8))
    }

    func signUp(_ id: String, host: String, mail: String = "admin@example.org") async -> TestAnswer {
        await relay.post(
            .signUp,
            [("zulip_org_id", id), ("zulip_org_key", Self.key), ("hostname", host), ("contact_email", mail)])
    }

    /// What a newer version may have written of a server: a record whose format nobody here knows.
    func makeUnreadable(_ server: String) async throws {
        let key = relay.keys.server(try #require(UUIDText(server)))
        let record = Record(key: key, touchedAt: now, body: Secret([255]))
        try #require(try await relay.store.apply([.put(record, if: .any)]) == .committed)
    }

    func reportRealm(_ realm: String, by server: String) async -> TestAnswer {
        await reportRealms([realm], by: server)
    }

    func reportRealms(_ realms: [String], by server: String) async -> TestAnswer {
        let list = realms.map { #"{"uuid":"\#($0)","id":1}"# }.joined(separator: ",")
        return await relay.post(
            .analytics,
            [
                ("realm_counts", #"[{"id":12},{"id":9}]"#), ("installation_counts", "[]"),
                ("realms", "[\(list)]")
            ], authorization: Self.basic(server))
    }

    /// Registers an APNs token for `realm`.
    func register(
        _ token: String, timestamp: Int64, appID: String = "org.example.app",
        realm: String = RealmRig.realm, by server: String = RealmRig.server, key: String = RealmRig.key
    ) async throws -> TokenID {
        try await register(
            RegistrationPlaintext(
                kind: .apns, token: Secret(token.utf8), timestamp: timestamp, appID: appID),
            token, realm, Self.basic(server, key))
    }

    /// Registers an FCM token for the bench's own realm.
    func register(fcm token: String, timestamp: Int64) async throws -> TokenID {
        try await register(
            RegistrationPlaintext(kind: .fcm, token: Secret(token.utf8), timestamp: timestamp, appID: nil),
            token, Self.realm, Self.basic(Self.server))
    }

    private func register(
        _ plain: RegistrationPlaintext, _ token: String, _ realm: String, _ authorization: String
    ) async throws -> TokenID {
        let timestamp = plain.timestamp
        let ephemeral = try X25519KeyPair(privateKey: Secret(SHA256.hash(Array("\(token)\(timestamp)".utf8))))
        let sealed = try RegistrationBox.seal(plain, to: pair.publicKey, ephemeral: ephemeral)
        let id = TokenID(token: Secret(token.utf8))
        let answer = await relay.post(
            .register,
            [
                ("realm_uuid", realm), ("token_id", id.text),
                ("encrypted_push_registration", sealed.reveal { String(decoding: $0, as: UTF8.self) }),
                ("bouncer_public_key", Base64.text(pair.publicKey))
            ], authorization: authorization)
        try #require(answer.status == 200)
        return id
    }

    /// Asks for a registration of an FCM token and gives the answer, whatever it is.
    func ask(
        toRegister token: String, realm: String = RealmRig.realm, by server: String = RealmRig.server
    ) async throws -> TestAnswer {
        let plain = RegistrationPlaintext(
            kind: .fcm, token: Secret(token.utf8), timestamp: now.seconds, appID: nil)
        let sealed = try RegistrationBox.seal(
            plain, to: pair.publicKey,
            ephemeral: try X25519KeyPair(privateKey: Secret(SHA256.hash(Array(token.utf8)))))
        return await relay.post(
            .register,
            [
                ("realm_uuid", realm), ("token_id", TokenID(token: Secret(token.utf8)).text),
                ("encrypted_push_registration", sealed.reveal { String(decoding: $0, as: UTF8.self) }),
                ("bouncer_public_key", Base64.text(pair.publicKey))
            ], authorization: Self.basic(server))
    }

    /// One alert to each of the ids.
    func notify(
        _ ids: [TokenID], realm: String = RealmRig.realm, by server: String = RealmRig.server
    ) async -> TestAnswer {
        await notify(raw: Self.body(ids.map { Self.item($0.text) }, realm: realm), by: server)
    }

    func notify(raw body: String, by server: String = RealmRig.server) async -> TestAnswer {
        await relay.ask(
            "POST", ZulipPath.notify.rawValue, authorization: Self.basic(server), body: Array(body.utf8))
    }

    static func body(_ items: [String], realm: String = RealmRig.realm) -> String {
        #"{"realm_uuid":"\#(realm)","push_requests":[\#(items.joined(separator: ","))]}"#
    }

    static func item(_ id: String, data: String = "QUJD", extra: String = "") -> String {
        #"{"token_id":"\#(id)","http_headers":{"apns_priority":10,"apns_push_type":"alert"},"#
            + #""payload":{"push_key_id":1,"encrypted_data":"\#(data)"\#(extra)}}"#
    }

    /// An FCM item of three JSON texts, right or wrong.
    static func fcm(_ id: String, _ priority: String, _ payload: String) -> String {
        #"{"token_id":\#(id),"fcm_priority":\#(priority),"payload":\#(payload)}"#
    }
}
