import Primitives
public import PushModel
public import SealbellKit
import WireFormats

/// The origin: a server that seals notifications for its users' devices and hands them to the relay (§5). A
/// value; it sends nothing.
public struct ZulipOrigin: Sendable {
    /// `zulip_org_id`: canonical lower-case UUID version 4.
    public let id: String
    /// `zulip_org_key`: 64 characters.
    private let key: Secret
    private let version: String
    private let relay: String

    /// - Parameter id: `zulip_org_id`, a canonical lower-case UUID.
    /// - Parameter key: `zulip_org_key`, 64 characters.
    /// - Parameter version: what stands behind `ZulipServer/` in the user agent.
    /// - Parameter relay: the relay's base URL, `https://` and no slash at the end. Without it a call's URL
    ///   is its path, which begins with `/api/v1/remotes/`, for who knows the relay when the call leaves.
    public init(id: String, key: Secret, version: String, relay: String = "") {
        self.id = id
        self.key = key
        self.version = version
        self.relay = relay
    }

    /// A field of a notify call by which an origin asks to be told the ids of its pushes (decision 0130).
    package static let referencesField = "sealbell-references"

    /// Invents an id (a UUID) and a key (64 hex digits).
    ///
    /// - Parameter relay: as in ``init(id:key:version:relay:)``.
    public static func invent(
        version: String, relay: String = "", using generator: inout some RandomNumberGenerator
    ) -> (origin: ZulipOrigin, key: Secret) {
        let id = UUIDText(version4From: generator.next(), generator.next())
        let key = randomSecret(ZulipLimits.organizationKeyBytes / 2, &generator).reveal {
            Secret(Hex.encode($0).utf8)
        }
        return (ZulipOrigin(id: id.text, key: key, version: version, relay: relay), key)
    }

    /// `server/register`: signs up, or changes host, contact or key.
    ///
    /// - Parameter newKey: 64 characters, in place of the one that the relay knows; `nil`: it stays.
    public func signUp(hostname: String, mail: String, newKey: Secret? = nil) -> HTTPCall {
        var fields: [(name: String, value: Secret)] = [
            ("zulip_org_id", Secret(id.utf8)), ("zulip_org_key", key), ("hostname", Secret(hostname.utf8)),
            ("contact_email", Secret(mail.utf8))
        ]
        if let newKey { fields.append(("new_org_key", newKey)) }
        return form(.signUp, fields, isAuthenticated: false)
    }

    /// `server/register/transfer`: asks for the secret that the host must show (``ZulipTransfer``). Neither
    /// id nor key is sent.
    public func transfer(hostname: String) -> HTTPCall {
        form(.transfer, [("hostname", Secret(hostname.utf8))], isAuthenticated: false)
    }

    /// `server/register/verify_challenge`: asks the relay to fetch the secret from the host, and to give out
    /// the id of the host's server and a new key. Neither id nor key is sent.
    ///
    /// - Parameter accessToken: the path element under which the host shows the secret, as text.
    public func verifyChallenge(hostname: String, accessToken: Secret) -> HTTPCall {
        form(
            .verifyChallenge, [("hostname", Secret(hostname.utf8)), ("access_token", accessToken)],
            isAuthenticated: false)
    }

    /// `server/deactivate`: every later call is refused.
    public func deactivate() -> HTTPCall { call(.deactivate, json: Secret("{}".utf8)) }

    /// `server/analytics/status`.
    public func analyticsStatus() -> HTTPCall {
        call("GET", ZulipPath.analyticsStatus.rawValue, headers: headers(nil, isAuthenticated: true))
    }

    /// `server/analytics`: makes realms known, without which both encrypted calls are refused.
    public func analytics(realms: [ZulipRealmReport], featureLevel: Int64 = 468) -> HTTPCall {
        var writer = JSONWriter(reserving: 512 * (realms.count + 1))
        writer.beginArray()
        for realm in realms { Self.write(realm, &writer) }
        writer.endArray()
        return form(
            .analytics,
            [
                ("realm_counts", Secret("[]".utf8)), ("installation_counts", Secret("[]".utf8)),
                ("realms", writer.takeSecret()), ("version", Secret("\"\(version)\"".utf8)),
                ("api_feature_level", Secret(String(featureLevel).utf8))
            ])
    }

    /// The header fields by which the relay knows who calls, as text: `HTTPCall.headers` without those of
    /// a body.
    public var credentials: [(name: String, value: Secret)] { headers(nil, isAuthenticated: true) }

    // MARK: parts

    private static func write(_ realm: ZulipRealmReport, _ writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("id", realm.id)
        writer.member("uuid", realm.uuid)
        writer.member("uuid_owner_secret", realm.ownerSecret)
        writer.member("host", realm.host)
        writer.member("url", realm.url)
        writer.member("name", realm.name)
        writer.member("org_type", realm.organizationType)
        writer.member("date_created", realm.createdAt)
        writer.member("deactivated", realm.isDeactivated)
        writer.endObject()
    }

    func call(_ path: ZulipPath, json: Secret) -> HTTPCall {
        call(
            path.method, path.rawValue, headers: headers("application/json", isAuthenticated: true),
            body: json)
    }

    /// - Parameter path: with the query where there is one.
    func call(
        _ method: String, _ path: String, headers: [(name: String, value: Secret)], body: Secret = Secret([])
    ) -> HTTPCall {
        HTTPCall(
            method: method, url: relay + path, headers: headers, body: body,
            answerLimitBytes: ZulipOriginLimits.answerBytes)
    }

    func form(
        _ path: ZulipPath, _ fields: [(name: String, value: Secret)], isAuthenticated: Bool = true
    ) -> HTTPCall {
        let plain = fields.map { ($0.name, $0.value.reveal { Array($0) }) }
        var encoded = Form(plain).encoded()
        defer { encoded.withUnsafeMutableBytes { wipe($0) } }
        return call(
            path.method, path.rawValue,
            headers: headers("application/x-www-form-urlencoded", isAuthenticated: isAuthenticated),
            body: Secret(encoded))
    }

    func headers(_ type: String?, isAuthenticated: Bool) -> [(name: String, value: Secret)] {
        var headers = [(name: "User-agent", value: Secret("ZulipServer/\(version)".utf8))]
        if let type { headers.append(("Content-type", Secret(type.utf8))) }
        if isAuthenticated { headers.append(("Authorization", basic)) }
        return headers
    }

    /// RFC 7617.
    private var basic: Secret {
        key.reveal { key in
            var plain = Array(id.utf8) + [0x3A] + key
            var text = Array("Basic ".utf8)
            Base64.append(plain, to: &text)
            defer {
                plain.withUnsafeMutableBytes { wipe($0) }
                text.withUnsafeMutableBytes { wipe($0) }
            }
            return Secret(text)
        }
    }
}
