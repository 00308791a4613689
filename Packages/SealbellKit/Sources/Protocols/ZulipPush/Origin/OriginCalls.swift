public import PushModel
public import SealbellKit
import WireFormats

/// A device's sealed registration on its way to the relay, which alone can open it (§5.4, §14.5).
public struct SealedRegistration: Sendable {
    /// What the relay will know the device by.
    public enum Name: Sendable, Hashable {
        /// v12: the hash of its token.
        case token(TokenID)
        /// v11 and the specification's own profile, which make the same call (§14.1): `push_account_id`.
        case account(Int64)
    }

    /// The device, as the relay will know it.
    public let name: Name
    /// Which push service the token inside is of.
    public let kind: TokenKind
    /// As the client sent it; the relay compares it with the text of its keys.
    public let bouncerKey: String
    /// Base64.
    public let sealed: Secret

    /// - Parameter bouncerKey: `bouncer_public_key`, Base64 of 32 bytes, as the client sent it.
    /// - Parameter sealed: `encrypted_push_registration`, Base64.
    public init(_ name: Name, kind: TokenKind, bouncerKey: String, sealed: Secret) {
        self.name = name
        self.kind = kind
        self.bouncerKey = bouncerKey
        self.sealed = sealed
    }
}

extension ZulipOrigin {
    /// `push/e2ee/register`: passes a device's sealed registration on.
    public func register(_ registration: SealedRegistration, realm: String) -> HTTPCall {
        var fields: [(name: String, value: Secret)] = [("realm_uuid", Secret(realm.utf8))]
        switch registration.name {
        case .token(let id): fields.append(("token_id", Secret(id.text.utf8)))
        case .account(let id): fields.append(("push_account_id", Secret(String(id).utf8)))
        }
        fields.append(("encrypted_push_registration", registration.sealed))
        fields.append(("bouncer_public_key", Secret(registration.bouncerKey.utf8)))
        // The account form tells the kind, too, and the relay refuses a blob of another (§14.5).
        if case .account = registration.name {
            fields.append(("token_kind", Secret(registration.kind.rawValue.utf8)))
        }
        return form(.register, fields)
    }

    /// `push/e2ee/stale_devices`: a page of the ids whose tokens died long ago (§14.7). Relays other than
    /// Sealbell do not have it.
    ///
    /// - Parameter realm: canonical lower-case UUID.
    /// - Parameter id: the page begins above it; 0 for the first.
    /// - Parameter limit: `nil`: as many as the relay gives, which is 1,000.
    public func staleDevices(realm: String, after id: Int64 = 0, limit: Int? = nil) -> HTTPCall {
        var fields = [("realm_uuid", realm)]
        if id > 0 { fields.append(("after", String(id))) }
        if let limit { fields.append(("limit", String(limit))) }
        let query = Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded()
        return call(
            ZulipPath.staleDevices.method,
            ZulipPath.staleDevices.rawValue + "?" + String(decoding: query, as: UTF8.self),
            headers: headers(nil, isAuthenticated: true))
    }

    /// Whether an application that has a plaintext path of its own may send on it (§14.13). With either
    /// setting "no unencrypted notifications will be sent". Sealbell itself has no such path.
    ///
    /// - Parameter serverRequires: the server's administrators require encryption.
    /// - Parameter realmRequires: the realm's do.
    public static func mayUseLegacy(serverRequires: Bool, realmRequires: Bool) -> Bool {
        !serverRequires && !realmRequires
    }
}
