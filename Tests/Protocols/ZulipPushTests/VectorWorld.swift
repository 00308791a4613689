import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// The world of a vector file: keys, servers and realms, put into a fresh relay by the relay's own calls.
struct VectorWorld: Sendable {
    struct Server: Sendable {
        let id: String
        let key: String
        let isDeactivated: Bool
        let realms: [String]

        var authorization: String { "Basic " + Base64.text(Array("\(id):\(key)".utf8)) }
    }

    let now: UnixTime
    /// Active keys only.
    let pairs: [X25519KeyPair]
    let pushKeys: [String]
    let servers: [Server]

    var realm: String { servers[0].realms[0] }
    var authorization: String { servers[0].authorization }

    init(_ file: VectorFile) throws {
        now = file.now
        let keys = try #require(file.json["keys"])
        pairs = try #require(keys["bouncer"]?.array).filter { $0["status"]?.string == "active" }.map {
            try X25519KeyPair(privateKey: Secret(try Base64.decode(try #require($0["private_key"]?.string))))
        }
        pushKeys = try #require(keys["push_keys"]?.array).compactMap { $0["push_key"]?.string }
        servers = try #require(file.json["world"]?["servers"]?.array).map {
            Server(
                id: try #require($0["zulip_org_id"]?.string), key: try #require($0["zulip_org_key"]?.string),
                isDeactivated: $0["deactivated"]?.bool == true,
                realms: try #require($0["realms"]?.array).compactMap(\.string))
        }
    }

    /// A relay with the servers signed up and their realms known.
    func relay(
        fallbacks: FallbackAlerts = FallbackAlerts([:]), defaultAppID: String? = nil
    ) async throws -> TestRelay {
        let relay = try await TestRelay(
            now: now, pairs: pairs, fallbacks: fallbacks, defaultAppID: defaultAppID)
        for (index, server) in servers.enumerated() {
            let signUp = await relay.post(
                .signUp,
                [
                    ("zulip_org_id", server.id), ("zulip_org_key", server.key),
                    ("hostname", "world\(index).example.org"), ("contact_email", "admin@example.org")
                ])
            try #require(signUp.status == 200)
            let realms = server.realms.map { #"{"uuid":"\#($0)","id":1}"# }.joined(separator: ",")
            let analytics = await relay.post(
                .analytics,
                [("realm_counts", "[]"), ("installation_counts", "[]"), ("realms", "[\(realms)]")],
                authorization: server.authorization)
            try #require(analytics.status == 200)
            if server.isDeactivated {
                let answer = await relay.ask(
                    "POST", ZulipPath.deactivate.rawValue, authorization: server.authorization,
                    body: Array("{}".utf8))
                try #require(answer.status == 200)
            }
        }
        return relay
    }

    /// Registers a device as `registered` of a notify case describes it.
    func add(_ device: JSONValue, to relay: TestRelay) async throws {
        let token = try #require(device["token"]?.string)
        let kind = try #require(device["token_kind"]?.string.flatMap(TokenKind.init(rawValue:)))
        let realm = device["realm"]?.string ?? realm
        let owner = try #require(servers.first { $0.realms.contains(realm) })
        let plain = RegistrationPlaintext(
            kind: kind, token: Secret(token.utf8), timestamp: now.seconds, appID: device["ios_app_id"]?.string
        )
        let ephemeral = try X25519KeyPair(privateKey: Secret(SHA256.hash(Array(token.utf8))))
        let sealed = try RegistrationBox.seal(plain, to: pairs[0].publicKey, ephemeral: ephemeral)
        let id = TokenID(token: Secret(token.utf8))
        let answer = await relay.post(
            .register,
            [
                ("realm_uuid", realm), ("token_id", id.text),
                ("encrypted_push_registration", sealed.reveal { String(decoding: $0, as: UTF8.self) }),
                ("bouncer_public_key", Base64.text(pairs[0].publicKey))
            ], authorization: owner.authorization)
        try #require(answer.status == 200)
        if device["expired"]?.bool == true {
            let key = try await relay.deviceKey(try #require(UUIDText(realm)), id)
            try #require(try await relay.store.apply([.expire(key, at: now, if: .any)]) == .committed)
        }
    }
}
