import NextcloudPush
import Primitives
import PushModel
import RSAKeys
import Testing
import WireFormats

/// A user with a server and a phone, for tests of both ends.
struct Ends {
    static let now = UnixTime(seconds: 1_800_000_000)
    static let proxy = "https://push.example.com"
    static let server = "https://cloud.example.org"
    static let token = "0176C561E646888950AAC1E3DE491638 6316EEDCAB83AF290F5ED421E49B637F"

    /// Made once: it takes a while.
    private static let keys = Result { try (0..<3).map { _ in try RSAPrivateKey.generate() } }

    let user: NextcloudUser
    let deviceKey: RSAPrivateKey
    /// Somebody else's.
    let otherKey: RSAPrivateKey

    init() throws {
        let keys = try Self.keys.get()
        user = NextcloudUser(cloudID: "alice@cloud.example.org", key: keys[0])
        deviceKey = keys[1]
        otherKey = keys[2]
    }

    // MARK: the server's side

    func session(_ tokenID: Int64? = 41) -> NextcloudSession {
        NextcloudSession(user: user, tokenID: tokenID)
    }

    func registration(
        token: String = Ends.token, proxy: String = Ends.proxy, key: String? = nil
    ) throws -> PushRegistration {
        PushRegistration(
            pushTokenHash: try NextcloudPushToken(Secret(token.utf8)).hash,
            devicePublicKey: key ?? deviceKey.publicKey.pem, proxyServer: proxy)
    }

    func row(
        _ tokenID: Int64 = 41, group: DeviceGroup = .talk, proxy: String = Ends.proxy, hash: String = "h",
        key: String? = nil
    ) -> RegisteredDevice {
        RegisteredDevice(
            tokenID: tokenID, deviceIdentifier: user.identity(tokenID: tokenID).deviceIdentifier,
            devicePublicKey: key ?? deviceKey.publicKey.pem, pushTokenHash: hash, proxyServer: proxy,
            group: group)
    }

    /// All of them, used just now.
    func everybody(_ rows: [RegisteredDevice]) -> Audience {
        let states = rows.map { ($0.tokenID, AppPasswordState(lastUsedAt: Self.now)) }
        return PushConditions(appPasswords: Dictionary(states, uniquingKeysWith: { $1 }))
            .everybody(of: rows, now: Self.now)
    }

    static func chat(_ subject: String = "see you at nine", id: Int64 = 7) -> NextcloudNotification {
        NextcloudNotification(id: id, app: "spreed", subject: subject, objectType: "chat", objectID: "t0k3n")
    }

    /// Entries that carry no ciphertext, for queues.
    func entry(
        _ name: String, proxy: String = Ends.proxy, isCall: Bool = false
    ) -> SealedEntry {
        var notification = Self.chat()
        if isCall { notification.objectType = "call" }
        return SealedEntry(
            row(proxy: proxy), SealedSubject(subject: Secret(name.utf8), signature: Secret("c2ln".utf8)),
            NextcloudPushKind(notification))
    }

    // MARK: the phone's side

    var account: NextcloudAccount {
        NextcloudAccount(
            serverURL: Self.server, userID: "alice", loginName: "alice@example.org",
            appPassword: Secret("aaaaa-bbbbb".utf8))
    }

    func device(
        app: NextcloudAppBuild? = nil, key: RSAPrivateKey? = nil, userKey: RSAPrivateKey? = nil,
        completedAt: UnixTime? = Ends.now
    ) throws -> NextcloudRoutine {
        NextcloudRoutine(
            account: account, app: app ?? Self.app, key: key ?? deviceKey,
            registration: try self.registered(by: userKey ?? user.key, completedAt: completedAt))
    }

    static let app = NextcloudAppBuild(
        proxyServer: Ends.proxy + "/", userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0", voip: .strict)

    func registered(by key: RSAPrivateKey, completedAt: UnixTime?) throws -> DeviceRegistration {
        let identity = user.identity(tokenID: 41)
        return DeviceRegistration(
            deviceIdentifier: identity.deviceIdentifier, signature: try identity.signature(by: key),
            userPublicKey: key.publicKey, proxyServer: Self.app.proxyServer,
            pushTokenHash: try NextcloudPushToken(Secret(Self.token.utf8)).hash,
            deviceKeyDigest: DeviceRegistration.digest(deviceKey.publicKey), completedAt: completedAt)
    }

    /// Any text, encrypted and signed as an origin does it.
    func sealed(
        _ plain: [UInt8], _ padding: RSAPadding = .oaepSHA1, by signer: RSAPrivateKey? = nil
    ) throws -> SealedSubject {
        try signed(try deviceKey.publicKey.encrypt(Secret(plain), padding: padding), by: signer)
    }

    /// Any bytes, signed.
    func signed(_ ciphertext: [UInt8], by signer: RSAPrivateKey? = nil) throws -> SealedSubject {
        let signature = try ciphertext.withUnsafeBytes { try (signer ?? user.key).sign($0) }
        return SealedSubject(
            subject: Secret(Base64.encode(ciphertext)), signature: Secret(Base64.encode(signature)))
    }

    /// The same as a push service hands it over.
    func delivered(_ sealed: SealedSubject) throws -> Delivered {
        let text = { (secret: Secret) in secret.reveal { String(decoding: $0, as: UTF8.self) } }
        return try Delivered(data: ["subject": text(sealed.subject), "signature": text(sealed.signature)])
    }

    var login: NextcloudLogin { NextcloudLogin(account, Self.app) }

    /// What a proxy is sent for one device.
    static func subject(of entry: SealedEntry) throws -> SealedSubject {
        let json = try entry.json.reveal { try JSONValue.parse($0) }
        return SealedSubject(
            subject: Secret(try #require(json["subject"]?.string).utf8),
            signature: Secret(try #require(json["signature"]?.string).utf8))
    }
}

extension HTTPCall {
    var text: String { body.reveal { String(decoding: $0, as: UTF8.self) } }
    func header(_ name: String) -> String? {
        headers.first { $0.name == name }.map { $0.value.reveal { String(decoding: $0, as: UTF8.self) } }
    }
    /// Names of the form's fields, and the value of one.
    var form: Form { get throws { try body.reveal { try Form.parse($0, fieldLimit: 20_000) } } }
}

extension CallAnswer {
    init(_ status: Int, _ body: String = "", retryAfter: String? = nil) {
        self.init(status: status, retryAfter: retryAfter, body: Secret(body.utf8))
    }
}
