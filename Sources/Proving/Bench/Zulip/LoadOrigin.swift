package import NIOCore
import Primitives
package import PushModel
import WireFormats

/// A device as the load's origin knows it.
package struct LoadDevice: Sendable {
    package var kind: PushService
    /// Hex digits at APNs; letters and digits at FCM.
    package var token: String
    /// First 8 bytes of the token's SHA-256, in base64 (docs/conformance/zulip.md).
    package var tokenID: String
    package var pushKeyID: UInt32

    /// A device with a random token.
    package static func make(_ kind: PushService, _ world: World) -> LoadDevice {
        let random = Hex.encode(world.randomBytes(32))
        // A registration token at FCM has a colon in it, an installation id has none (docs/push-services.md
        // §4.2).
        let token = kind == .apns ? random : "c\(random.prefix(21)):APA91b\(random)"
        let digest = SHA256.hash(Array(token.utf8))
        return LoadDevice(
            kind: kind, token: token, tokenID: Base64.text(digest.prefix(8)),
            pushKeyID: UInt32(truncatingIfNeeded: world.random()))
    }
}

/// A Zulip server that exists to make load: credentials of its own, one realm, devices, and the requests.
package struct LoadOrigin: Sendable {
    package let host: String
    package private(set) var realm: String
    package private(set) var devices: [LoadDevice] = []
    private let serverID: String
    private let serverKey: String
    private let bouncerKey: [UInt8]
    private let bundle: String
    private let world: World
    private let contentKey: Secret

    /// - Parameters:
    ///   - host: value of the requests' `Host` field.
    ///   - bouncerKey: 32 bytes, to which registrations are sealed.
    ///   - bundle: the app's bundle id, `ios_app_id` of APNs registrations.
    package init(host: String, bouncerKey: [UInt8], bundle: String, world: World) {
        self.host = host
        self.bouncerKey = bouncerKey
        self.bundle = bundle
        self.world = world
        serverID = UUIDText(version4From: world.random(), world.random()).text
        realm = UUIDText(version4From: world.random(), world.random()).text
        serverKey = Hex.encode(world.randomBytes(32))
        contentKey = Secret(world.randomBytes(32))
    }

    /// The same server, naming a realm that is another's: its credentials are good and the realm is not its
    /// own.
    package func naming(realmOf other: LoadOrigin) -> LoadOrigin {
        var claiming = self
        claiming.realm = other.realm
        return claiming
    }

    private var authorization: String { "Basic " + Base64.text(Array("\(serverID):\(serverKey)".utf8)) }

    /// `server/register`, then `server/analytics`: after them the relay knows server and realm (zulip.md
    /// §5.2, §5.3).
    package func signUp() -> [RequestBook] {
        let name = "load-\(serverID.prefix(8)).example.org"
        let server = LoadRequests.form(
            path: "/api/v1/remotes/server/register", host: host, authorization: nil,
            fields: [
                ("zulip_org_id", serverID), ("zulip_org_key", serverKey), ("hostname", name),
                ("contact_email", "admin@\(name)")
            ])
        let analytics = report([realm])
        return [server, analytics].map { request in
            var book = RequestBook()
            book.add(head: request.head, body: request.body)
            return book
        }
    }

    /// `server/analytics` with these realms and no counts.
    func report(_ realms: [String]) -> (head: [UInt8], body: [UInt8]) {
        let name = "load-\(serverID.prefix(8)).example.org"
        let rows = realms.enumerated().map { index, realm in
            JSONValue.object([
                "id": .number(JSONNumber(Int64(index + 1))), "host": .string(name),
                "url": .string("https://\(name)"), "name": .string("Load"),
                "org_type": .number(JSONNumber(10)), "date_created": .number(JSONNumber(1_700_000_000)),
                "deactivated": .bool(false), "is_system_bot_realm": .bool(false),
                "authentication_methods": .object(["Email": .bool(true)]), "uuid": .string(realm),
                "uuid_owner_secret": .string("zuliprealm_\(Hex.encode(world.randomBytes(16)))")
            ])
        }
        return LoadRequests.form(
            path: "/api/v1/remotes/server/analytics", host: host, authorization: authorization,
            fields: [
                ("realm_counts", "[]"), ("installation_counts", "[]"), ("realmauditlog_rows", "[]"),
                ("realms", String(decoding: JSONValue.array(rows).serialized(), as: UTF8.self)),
                ("version", "\"12.0\""), ("merge_base", "\"12.0\""), ("api_feature_level", "483")
            ])
    }

    /// Makes devices and the requests that register them (docs/conformance/zulip.md).
    ///
    /// - Throws: `CryptoError` when the bouncer's key is none.
    package mutating func addDevices(_ count: Int, _ kind: PushService) throws -> RequestBook {
        var book = RequestBook()
        let publicKey = Base64.text(bouncerKey)
        for _ in 0..<count {
            let device = LoadDevice.make(kind, world)
            var plain: JSONObject = [
                "token_kind": .string(kind.name), "token": .string(device.token),
                "timestamp": .number(JSONNumber(world.now().seconds))
            ]
            if kind == .apns { plain["ios_app_id"] = .string(bundle) }
            let sealed = try SealedBox.seal(
                Secret(JSONValue.object(plain).serialized()), to: bouncerKey, world: world)
            let request = LoadRequests.form(
                path: LoadRequests.registerPath, host: host, authorization: authorization,
                fields: [
                    ("realm_uuid", realm), ("token_id", device.tokenID), ("bouncer_public_key", publicKey),
                    ("encrypted_push_registration", Base64.text(sealed))
                ])
            book.add(head: request.head, body: request.body)
            devices.append(device)
        }
        return book
    }

    /// Lets go of the devices' tokens; the relay keeps them.
    package mutating func forgetDevices() { devices = [] }

    /// One `push/e2ee/notify` for these devices, each with a ciphertext that exists once
    /// (docs/conformance/zulip.md).
    ///
    /// - Parameter contentBytes: size of the plaintext before it is sealed.
    /// - Returns: the request, and the `encrypted_data` of each item in order.
    package func notify(
        _ targets: some Collection<LoadDevice>, contentBytes: Int
    ) throws -> (head: [UInt8], body: [UInt8], marks: [String]) {
        var marks: [String] = []
        var writer = JSONWriter(reserving: 256 + targets.count * (contentBytes * 2 + 256))
        writer.beginObject()
        writer.key("realm_uuid")
        writer.string(realm)
        writer.key("push_requests")
        writer.beginArray()
        for device in targets {
            let mark = Base64.text(try seal(contentBytes))
            marks.append(mark)
            write(device, mark, to: &writer)
        }
        writer.endArray()
        writer.endObject()
        let request = LoadRequests.json(
            path: LoadRequests.notifyPath, host: host, authorization: authorization, body: writer.bytes)
        return (request.head, request.body, marks)
    }

    /// Nonce (24 bytes) and secret box, as Zulip's servers send content (docs/conformance/zulip.md).
    private func seal(_ contentBytes: Int) throws -> [UInt8] {
        let nonce = world.randomBytes(SecretBox.nonceBytes)
        return nonce
            + (try SecretBox.seal(Secret(world.randomBytes(contentBytes)), key: contentKey, nonce: nonce))
    }

    private func write(_ device: LoadDevice, _ mark: String, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("token_id")
        writer.string(device.tokenID)
        if device.kind == .apns {
            writer.key("http_headers")
            writer.raw(Array(#"{"apns_priority":10,"apns_push_type":"alert"}"#.utf8))
        } else {
            writer.key("fcm_priority")
            writer.string("high")
        }
        writer.key("payload")
        writer.beginObject()
        writer.key("push_key_id")
        writer.int(Int64(device.pushKeyID))
        writer.key("encrypted_data")
        writer.string(mark)
        if device.kind == .apns {
            writer.key("aps")
            writer.raw(Array(#"{"mutable-content":1,"alert":{"title":"New notification"}}"#.utf8))
        }
        writer.endObject()
        writer.endObject()
    }
}

extension LoadOrigin {
    /// Sends requests of the set-up; each must be answered by a 200.
    ///
    /// - Throws: `.setUpRefused`, `.unreachable`.
    package static func drive(
        _ book: RequestBook, host: String, port: Int, _ eventLoop: any EventLoop
    ) async throws {
        let drive = RequestDrive(host: host, port: port, book: book, pace: .max, eventLoop: eventLoop)
        let report = try await drive.run(connections: 8, patience: .seconds(600))
        guard report.answered(200) == book.count else { throw BenchError(.setUpRefused) }
    }
}
