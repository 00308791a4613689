import NIOCore
import Primitives
import PushModel
import SealbellKit
import WireFormats
import ZulipPush

/// How a server names devices and what its items carry (docs/conformance/zulip.md).
package enum ZulipForm: String, Sendable, CaseIterable {
    case v12, v11, zap
}

/// A Zulip server that exists to make load: the kit's origin with credentials of its own, one realm, devices,
/// and the requests. Its notifications are written by hand: their content is of the size that is asked for,
/// and none takes longer to seal than a box does.
struct ZulipLoadOrigin: LoadOrigin {
    let host: String
    /// What its devices and notifications are made in from now on.
    var form = ZulipForm.v12
    private(set) var realm: String
    private(set) var devices: [LoadDevice] = []
    private let origin: ZulipOrigin
    /// Of its notifications.
    private let headers: [(name: String, value: Secret)]
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
        realm = UUIDText(version4From: world.random(), world.random()).text
        origin = ZulipOrigin(
            id: UUIDText(version4From: world.random(), world.random()).text,
            key: Secret(Hex.encode(world.randomBytes(32)).utf8), version: "12.0")
        headers = origin.credentials + [("Content-Type", Secret("application/json".utf8))]
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
        .make(kind, world) { TokenID(token: Secret($0.utf8)).text }
    }

    private var name: String { "load-\(origin.id.prefix(8)).example.org" }

    /// A call of the origin's as a request.
    private func request(_ call: HTTPCall) -> RequestText { requestText(call, host: host) }

    /// `server/register`, then `server/analytics`: after them the relay knows server and realm (zulip.md
    /// §5.2, §5.3).
    func signUp() -> [PreparedRequests] {
        [request(origin.signUp(hostname: name, mail: "admin@\(name)")), report([realm])].map { request in
            var prepared = PreparedRequests()
            prepared.add(head: request.head, body: request.body)
            return prepared
        }
    }

    /// `server/analytics` with these realms and no counts.
    func report(_ realms: [String]) -> RequestText {
        let rows = realms.enumerated().map { index, realm in
            ZulipRealmReport(
                id: Int64(index + 1), uuid: realm,
                ownerSecret: "zuliprealm_\(Hex.encode(world.randomBytes(16)))", host: name,
                url: "https://\(name)", name: "Load", organizationType: 10, createdAt: 1_700_000_000)
        }
        return request(origin.analytics(realms: rows, featureLevel: 483))
    }

    /// Makes devices and the requests that register them (docs/conformance/zulip.md).
    ///
    /// - Throws: `CryptoError` when the bouncer's key is none.
    mutating func addDevices(_ count: Int, _ kind: PushService) throws -> PreparedRequests {
        var prepared = PreparedRequests()
        for _ in 0..<count {
            let device = Self.makeDevice(kind, world)
            let request = try registration(of: device, as: .token(TokenID(token: Secret(device.token.utf8))))
            prepared.add(head: request.head, body: request.body)
            devices.append(device)
        }
        return prepared
    }

    private func registration(
        of device: LoadDevice, as name: SealedRegistration.Name
    ) throws -> RequestText {
        let kind: TokenKind = device.kind == .apns ? .apns : .fcm
        let plain = RegistrationPlaintext(
            kind: kind, token: Secret(device.token.utf8), timestamp: world.now().seconds,
            appID: kind == .apns ? bundle : nil)
        let sealed = try RegistrationBox.seal(plain, to: publicKey, ephemeral: .generate(world))
        let registration = SealedRegistration(
            name, kind: kind, bouncerKey: Base64.text(publicKey), sealed: sealed)
        return request(origin.register(registration, realm: realm))
    }

    /// Registers a device by an account id; its name is then the relay's number.
    ///
    /// - Returns: whether the relay answered with a number.
    mutating func join(_ kind: PushService, over connection: CallConnection) async throws -> Bool {
        var device = LoadDevice.make(kind, world)
        let request = try registration(of: device, as: .account(Int64(device.number)))
        guard let reply = await connection.ask(ByteBuffer(request), within: .seconds(20)),
            reply.status == 200,
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
        writer.member("realm_uuid", realm)
        writer.key("push_requests")
        writer.beginArray()
        for device in targets {
            let ciphertext = Base64.text(try seal(contentBytes))
            marks.append(ZulipLoad.mark(ofCiphertext: ciphertext))
            write(device, ciphertext, to: &writer)
        }
        writer.endArray()
        writer.endObject()
        let request = requestText(
            "POST", ZulipPath.notify.rawValue, host: host, headers, writer.takeSecret())
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
            writer.member("encrypted_content", ciphertext)
            writer.member("priority", "high")
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
            writer.member("fcm_priority", "high")
        }
        writer.key("payload")
        writer.beginObject()
        writer.key(form == .v12 ? "push_key_id" : "push_account_id")
        writer.int(Int64(device.number))
        writer.member("encrypted_data", ciphertext)
        if device.kind == .apns {
            writer.key("aps")
            writer.raw(Array(#"{"mutable-content":1,"alert":{"title":"New notification"}}"#.utf8))
        }
        writer.endObject()
    }
}
