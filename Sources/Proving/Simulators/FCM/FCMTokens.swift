import Crypto
import CryptoExtras
import PushModel

/// The token endpoint's refusals (RFC 6749 §5.2, in Google's wording).
struct TokenRefusal: Error, Equatable {
    var http: Int
    var code: String

    static let invalidRequest = TokenRefusal(http: 400, code: "invalid_request")
    static let unsupportedGrantType = TokenRefusal(http: 400, code: "unsupported_grant_type")
    static let invalidGrant = TokenRefusal(http: 400, code: "invalid_grant")
    static let invalidClient = TokenRefusal(http: 401, code: "invalid_client")
    static let invalidScope = TokenRefusal(http: 400, code: "invalid_scope")
}

/// Service accounts on file, and the access tokens issued to them (docs/push-services.md §4.1, §5).
struct FCMTokens {
    struct Access: Equatable {
        var project: String
        var expires: UnixTime
    }

    /// How many access tokens are remembered; if there are more, the oldest half is dropped. A correct sender
    /// asks once an hour.
    private static let remembered = 4096
    static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    private static let skewSeconds: Int64 = 300
    private static let lifeSeconds: Int64 = 3600

    private var accounts: [String: (registration: ServiceAccountRegistration, key: _RSA.Signing.PublicKey)] =
        [:]
    private var issued: [String: Access] = [:]
    private var order: [String] = []

    init() {}

    mutating func register(_ account: ServiceAccountRegistration) throws(SimulatorError) {
        do {
            accounts[account.email] = (
                account, try _RSA.Signing.PublicKey(pemRepresentation: account.publicKeyPEM)
            )
        } catch {
            throw SimulatorError(.keyNotUsable)
        }
    }

    mutating func remove(email: String) { accounts.removeValue(forKey: email) }
    var projects: Set<String> { Set(accounts.values.map(\.registration.project)) }
    func access(_ token: String) -> Access? { issued[token] }
    mutating func revokeAll() { issued.removeAll() }

    /// Judges a request for an access token.
    ///
    /// - Parameter audiences: the endpoint's own names.
    /// - Returns: the project of the account.
    func judge(_ request: SimulatedRequest, audiences: Set<String>, now: UnixTime) throws(TokenRefusal)
        -> String
    {
        guard let type = request[.contentType], type.starts(with: "application/x-www-form-urlencoded".utf8),
            let form = Self.form(request.body)
        else { throw .invalidRequest }
        guard form["grant_type"] == Self.grantType else { throw .unsupportedGrantType }
        let parts = Array((form["assertion"] ?? "").utf8).split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = SimulatorBase64.decodeURL(parts[0]).flatMap({ JSONTree($0) }),
            let claims = SimulatorBase64.decodeURL(parts[1]).flatMap({ JSONTree($0) }),
            let signature = SimulatorBase64.decodeURL(parts[2]),
            header["alg"]?.text == "RS256"
        else { throw .invalidGrant }
        guard let issuer = claims["iss"]?.text, let account = accounts[issuer] else { throw .invalidClient }
        let signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        let isGood = account.key.isValidSignature(
            _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: signed),
            padding: .insecurePKCS1v1_5)
        guard isGood, let audience = claims["aud"]?.text, audiences.contains(audience) else {
            throw .invalidGrant
        }
        let scopes = (claims["scope"]?.text ?? "").split(separator: " ")
        guard scopes.contains(Self.scope[...]) else { throw .invalidScope }
        guard let issuedAt = claims["iat"]?.integer, let expires = claims["exp"]?.integer,
            expires > issuedAt, expires - issuedAt <= Self.lifeSeconds,
            issuedAt <= now.seconds + Self.skewSeconds, expires >= now.seconds - Self.skewSeconds
        else { throw .invalidGrant }
        return account.registration.project
    }

    mutating func issue(_ token: String, project: String, expires: UnixTime) {
        if order.count >= Self.remembered {
            for old in order.prefix(Self.remembered / 2) { issued.removeValue(forKey: old) }
            order.removeFirst(Self.remembered / 2)
        }
        order.append(token)
        issued[token] = Access(project: project, expires: expires)
    }

    /// `application/x-www-form-urlencoded`; `nil` if it is malformed. If a name occurs more than once, the
    /// first counts.
    private static func form(_ body: [UInt8]) -> [String: String]? {
        var form: [String: String] = [:]
        for pair in body.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = unescape(parts[0]), let value = unescape(parts.count > 1 ? parts[1] : []) else {
                return nil
            }
            if form[name] == nil { form[name] = value }
        }
        return form
    }

    private static func unescape(_ text: ArraySlice<UInt8>) -> String? {
        var out: [UInt8] = []
        var at = text.startIndex
        while at < text.endIndex {
            switch text[at] {
            case UInt8(ascii: "+"): out.append(0x20)
            case UInt8(ascii: "%"):
                guard at + 2 < text.endIndex,
                    let byte = UInt8(String(decoding: text[at + 1...at + 2], as: UTF8.self), radix: 16)
                else { return nil }
                out.append(byte)
                at += 2
            default: out.append(text[at])
            }
            at += 1
        }
        return String(validating: out, as: UTF8.self)
    }
}
