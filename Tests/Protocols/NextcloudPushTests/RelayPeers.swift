import Delivery
import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import WireFormats

/// A user of an instance, as the relay meets one: a key, and devices that it has signed.
struct PeerUser: Sendable {
    let key: RSAPrivateKey

    /// Made once: a key takes a while.
    static let alice = make()
    static let bob = make()
    /// Somebody with a key of their own, who guesses identifiers.
    static let stranger = make()

    private static func make() -> PeerUser {
        do { return PeerUser(key: try RSAPrivateKey.generate()) } catch {
            preconditionFailure("the library makes no key")
        }
    }

    func sign(_ bytes: [UInt8]) -> [UInt8] {
        do {
            return try withBytes(bytes) { (bytes) throws(RSAError) in try key.sign(bytes) }
        } catch { preconditionFailure("the library signs nothing") }
    }

    /// A device of `<cloud id>` with the app password of that number, signed by this user's key, whoever they
    /// are.
    func device(_ number: Int, of cloudID: String = "alice@cloud.example.org") -> PeerDevice {
        let preimage = Array(#"["\#(cloudID)",\#(number)]"#.utf8)
        let identifier = preimage.withUnsafeBytes { DeviceIdentifier(hashing: $0) }
        let signature = sign(preimage)
        return PeerDevice(
            identifier: identifier, signature: Base64.text(signature), publicKey: key.publicKey.pem,
            user: self)
    }
}

struct PeerDevice: Sendable {
    static let talk = "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0 (Strict VoIP)"
    static let form = "application/x-www-form-urlencoded"
    static let alertToken = String(repeating: "A1", count: 32)
    static let voipToken = String(repeating: "B2", count: 32)
    static let both = alertToken + " " + voipToken

    let identifier: DeviceIdentifier
    let signature: String
    let publicKey: String
    let user: PeerUser

    var id: String { String(decoding: identifier.base64, as: UTF8.self) }

    /// The fields of `POST /devices`; without a token those of DELETE.
    func fields(_ token: String? = nil, _ more: [(String, String)] = []) -> [(String, String)] {
        [
            ("deviceIdentifier", id), ("deviceIdentifierSignature", signature), ("userPublicKey", publicKey)
        ] + (token.map { [("pushToken", $0)] } ?? []) + more
    }

    func body(_ token: String? = nil, _ more: [(String, String)] = []) -> [UInt8] {
        Form(fields(token, more).map { ($0.0, Array($0.1.utf8)) }).encoded()
    }

    /// One entry of a notifications call, as a deployed server writes it.
    ///
    /// - Parameter number: another one makes another ciphertext.
    /// - Parameter token: as it was registered.
    func entry(
        _ number: Int, token: String = both, type: String? = "alert", priority: String? = "high",
        signedBy signer: PeerUser? = nil
    ) -> String {
        var subject = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 256)
        subject[0] = UInt8(truncatingIfNeeded: number >> 8)
        subject[1] = UInt8(truncatingIfNeeded: number >> 16)
        let signature = (signer ?? user).sign(subject)
        let hash = String(decoding: TokenHash(of: Secret(token.utf8)).hex, as: UTF8.self)
        var members = [
            ("deviceIdentifier", id), ("pushTokenHash", hash), ("subject", Base64.text(subject)),
            ("signature", Base64.text(signature))
        ]
        if let priority { members.append(("priority", priority)) }
        if let type { members.append(("type", type)) }
        return "{"
            + members.map {
                "\"\($0)\":\""
                    + $1.split(separator: "/", omittingEmptySubsequences: false)
                    .joined(separator: "\\/") + "\""
            }.joined(separator: ",") + "}"
    }
}

extension NextcloudRelayRig {
    static let talk = configured("acme-talk")
    static let files = configured("acme-files")
    static let apps = NextcloudApps(
        [
            NextcloudApp(name: talk, bundle: "org.acme.talk", hasVoIP: true, hasFCM: true),
            NextcloudApp(name: files, bundle: "org.acme.files", hasFCM: true)
        ],
        clients: [
            "nextcloud-talk": talk, "nextcloud-ios": files,
            "nextcloud-android": files
        ])

    /// An instance with a Talk and a Files app.
    static func make(
        policy: NextcloudPolicy = NextcloudPolicy(), web: (any WebFetch)? = nil, rows: Int = 20_000,
        pushesPerMinute: Int = 0, limits: DeliveryLimits = DeliveryLimits(), meeting: Int = 1,
        tolled: @escaping @Sendable (Toll) -> Duration? = { _ in nil }
    ) async throws -> NextcloudRelayRig {
        try await NextcloudRelayRig(
            apps: apps, policy: policy, web: web, rows: rows, pushesPerMinute: pushesPerMinute,
            limits: limits, meeting: meeting, tolled: tolled)
    }

    @discardableResult
    func register(
        _ device: PeerDevice, token: String = PeerDevice.both, _ more: [(String, String)] = [],
        userAgent: String? = PeerDevice.talk, path: String = "/devices", from client: UInt64 = 1
    ) async -> RelayAnswer {
        await ask(
            "POST", path, contentType: PeerDevice.form, userAgent: userAgent, body: device.body(token, more),
            from: client)
    }

    func unregister(_ device: PeerDevice, from client: UInt64 = 1) async -> RelayAnswer {
        await ask("DELETE", "/devices", contentType: PeerDevice.form, body: device.body(), from: client)
    }

    @discardableResult
    func notify(
        _ entries: [String], subscriptionKey: String? = nil, from client: UInt64 = 1
    ) async -> RelayAnswer {
        let form = Form(entries.enumerated().map { ("notifications[\($0)]", Array($1.utf8)) })
        return await ask(
            "POST", "/notifications", contentType: PeerDevice.form, subscriptionKey: subscriptionKey,
            body: form.encoded(), from: client)
    }

    /// What a push service answers for one token from now on.
    func end(_ token: String) {
        services.answer(token) { push in
            Answer(
                .unregistered(since: nil), push.message.service == .apns ? .badDeviceToken : .unregisteredFCM,
                sentAt: self.world.now())
        }
    }

    /// Revisions of all rows: unchanged when nothing was written.
    func revisions() async throws -> [UInt64] {
        var revisions: [UInt64] = []
        for space in [keys.pinSpace, keys.alertSpace, keys.voipSpace] {
            revisions += try await store.page(.space(space), after: 0, limit: 1_000).map(\.revision)
        }
        return revisions
    }
}

extension NextcloudTarget {
    /// Whether it is for that token, which is kept in the one spelling.
    func isFor(_ token: String) -> Bool { self.token == APNsMessage.canonical(Secret(token.utf8)) }
}
