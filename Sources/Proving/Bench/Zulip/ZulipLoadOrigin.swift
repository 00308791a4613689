import NIOCore
import Primitives
import PushModel
import WireFormats

/// How a server names devices and what its items carry (docs/conformance/zulip.md).
package enum ZulipForm: String, Sendable, CaseIterable {
    case v12, v11, zap
}

/// A Zulip server that exists to make load: credentials of its own, one realm, devices, and the requests.
struct ZulipLoadOrigin: LoadOrigin {
    let host: String
    /// What its devices and notifications are made in from now on.
    var form = ZulipForm.v12
    private(set) var realm: String
    private(set) var devices: [LoadDevice] = []
    private let serverID: String
    private let serverKey: String
    private let publicKey: [UInt8]
    private let bundle: String
    private let world: World
    private let contentKey: Secret

    /// - Parameters:
    ///   - host: value of the requests' `Host` field.
    ///   - publicKey: of the bouncer, 32 bytes, to which registrations are sealed.
    ///   - bundle: the app's bundle id, `ios_app_id` of APNs registrations.
    init(host: String, publicKey: [UInt8], bundle: String, world: World) {
        self.host = host
        self.publicKey = publicKey
        self.bundle = bundle
        self.world = world
        serverID = UUIDText(version4From: world.random(), world.random()).text
        realm = UUIDText(version4From: world.random(), world.random()).text
        serverKey = Hex.encode(world.randomBytes(32))
        contentKey = Secret(world.randomBytes(32))
    }

    /// The same server, naming a realm that is another's: its credentials are good and the realm is not its
    /// own.
    func naming(realmOf other: ZulipLoadOrigin) -> ZulipLoadOrigin {
        var claiming = self
        claiming.realm = other.realm
        return claiming
    }

    /// A device with a random token, named by the first 8 bytes of the token's SHA-256, in base64
    /// (docs/conformance/zulip.md).
    static func makeDevice(_ kind: PushService, _ world: World) -> LoadDevice {
        .make(kind, world) { Base64.text(SHA256.hash(Array($0.utf8)).prefix(8)) }
    }

    private var authorization: String { "Basic " + Base64.text(Array("\(serverID):\(serverKey)".utf8)) }

    /// `server/register`, then `server/analytics`: after them the relay knows server and realm (zulip.md
    /// §5.2, §5.3).
    func signUp() -> [RequestBook] {
        let name = "load-\(serverID.prefix(8)).example.org"
        let server = ZulipRequests.form(
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
        return ZulipRequests.form(
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
    mutating func addDevices(_ count: Int, _ kind: PushService) throws -> RequestBook {
        var book = RequestBook()
        for _ in 0..<count {
            let device = Self.makeDevice(kind, world)
            let request = try registration(of: device, [("token_id", device.name)])
            book.add(head: request.head, body: request.body)
            devices.append(device)
        }
        return book
    }

    private func registration(
        of device: LoadDevice, _ handle: [(String, String)]
    ) throws -> (head: [UInt8], body: [UInt8]) {
        var plain: JSONObject = [
            "token_kind": .string(device.kind.name), "token": .string(device.token),
            "timestamp": .number(JSONNumber(world.now().seconds))
        ]
        if device.kind == .apns { plain["ios_app_id"] = .string(bundle) }
        let sealed = try SealedBox.seal(
            Secret(JSONValue.object(plain).serialized()), to: publicKey, world: world)
        return ZulipRequests.form(
            path: ZulipRequests.registerPath, host: host, authorization: authorization,
            fields: [("realm_uuid", realm)] + handle + [
                ("bouncer_public_key", Base64.text(publicKey)),
                ("encrypted_push_registration", Base64.text(sealed))
            ])
    }

    /// Registers a device by an account id; its name is then the relay's number.
    ///
    /// - Returns: whether the relay answered with a number.
    mutating func join(_ kind: PushService, over connection: CallConnection) async throws -> Bool {
        var device = LoadDevice.make(kind, world)
        let request = try registration(of: device, [("push_account_id", String(device.number))])
        let call = ByteBuffer(bytes: request.head + request.body)
        guard let reply = await connection.ask(call, within: .seconds(20)), reply.status == 200,
            let number = try JSONValue.parse(Array(reply.body.readableBytesView))["device_id"]?.int64
        else { return false }
        device.name = String(number)
        devices.append(device)
        return true
    }

    /// Lets go of the devices' tokens; the relay keeps them.
    mutating func forgetDevices() { devices = [] }

    /// One `push/e2ee/notify` for these devices, each with a ciphertext that exists once
    /// (docs/conformance/zulip.md).
    ///
    /// - Parameter contentBytes: size of the plaintext before it is sealed.
    func notify(_ targets: some Collection<LoadDevice>, contentBytes: Int) throws -> LoadCall {
        var marks: [String] = []
        var writer = JSONWriter(reserving: 256 + targets.count * (contentBytes * 2 + 256))
        writer.beginObject()
        writer.key("realm_uuid")
        writer.string(realm)
        writer.key("push_requests")
        writer.beginArray()
        for device in targets {
            let ciphertext = Base64.text(try seal(contentBytes))
            marks.append(ZulipLoad.mark(ofCiphertext: ciphertext))
            write(device, ciphertext, to: &writer)
        }
        writer.endArray()
        writer.endObject()
        let request = ZulipRequests.json(
            path: ZulipRequests.notifyPath, host: host, authorization: authorization, body: writer.bytes)
        return (request.head, request.body, marks)
    }

    /// Nonce (24 bytes) and secret box, as Zulip's servers send content (docs/conformance/zulip.md).
    private func seal(_ contentBytes: Int) throws -> [UInt8] {
        let nonce = world.randomBytes(SecretBox.nonceBytes)
        return nonce
            + (try SecretBox.seal(Secret(world.randomBytes(contentBytes)), key: contentKey, nonce: nonce))
    }

    private func write(_ device: LoadDevice, _ ciphertext: String, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key(form == .v12 ? "token_id" : "device_id")
        if form == .v12 { writer.string(device.name) } else { writer.raw(Array(device.name.utf8)) }
        if form == .zap {
            writer.key("encrypted_content")
            writer.string(ciphertext)
            writer.key("priority")
            writer.string("high")
        } else {
            writePayload(device, ciphertext, to: &writer)
        }
        writer.endObject()
    }

    private func writePayload(_ device: LoadDevice, _ ciphertext: String, to writer: inout JSONWriter) {
        if device.kind == .apns {
            writer.key("http_headers")
            writer.raw(Array(#"{"apns_priority":10,"apns_push_type":"alert"}"#.utf8))
        } else {
            writer.key("fcm_priority")
            writer.string("high")
        }
        writer.key("payload")
        writer.beginObject()
        writer.key(form == .v12 ? "push_key_id" : "push_account_id")
        writer.int(Int64(device.number))
        writer.key("encrypted_data")
        writer.string(ciphertext)
        if device.kind == .apns {
            writer.key("aps")
            writer.raw(Array(#"{"mutable-content":1,"alert":{"title":"New notification"}}"#.utf8))
        }
        writer.endObject()
    }
}
