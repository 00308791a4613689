import Crypto
import PushModel

/// Judges provider tokens (docs/push-services.md §3, step 3) against the keys on file.
struct ProviderTokens {
    /// A token whose signature and issuer are valid; its age is checked at each use.
    struct Verified {
        let registration: APNsKeyRegistration
        let issuedAtSeconds: Int64
    }

    /// How many verified tokens are remembered, so that a signature is not checked for each push. If there
    /// are more, all are forgotten: a correct sender has one for each key.
    private static let rememberedTokens = 256
    /// An `iat` further ahead than this cannot be clock skew; one further back than `lifeSeconds` is expired.
    private static let skewSeconds: Int64 = 60
    private static let lifeSeconds: Int64 = 3600

    let environment: APNsEnvironment
    private var keys: [String: (registration: APNsKeyRegistration, key: P256.Signing.PublicKey)] = [:]
    private var remembered: [[UInt8]: Verified] = [:]

    init(environment: APNsEnvironment) { self.environment = environment }

    /// Puts a key on file, or replaces it.
    mutating func register(_ registration: APNsKeyRegistration) throws(SimulatorError) {
        do {
            let key = try P256.Signing.PublicKey(pemRepresentation: registration.publicKeyPEM)
            keys[registration.keyID] = (registration, key)
            remembered.removeAll()
        } catch {
            throw SimulatorError(.keyNotUsable)
        }
    }

    /// False if no such key is on file.
    mutating func bind(keyID: String, to environments: Set<APNsEnvironment>) -> Bool {
        guard keys[keyID] != nil else { return false }
        keys[keyID]?.registration.environments = environments
        remembered.removeAll()
        return true
    }

    mutating func revoke(keyID: String) {
        keys.removeValue(forKey: keyID)
        remembered.removeAll()
    }

    /// - Parameter authorization: the header's value; `nil` if it is absent.
    mutating func judge(
        _ authorization: ArraySlice<UInt8>?, now: UnixTime
    ) -> Result<(token: ArraySlice<UInt8>, verified: Verified), Refusal> {
        guard let authorization else { return .failure(Refusal(.missingProviderToken)) }
        let scheme = "bearer ".utf8
        guard authorization.starts(with: scheme) else { return .failure(Refusal(.invalidProviderToken)) }
        let token = authorization.dropFirst(scheme.count)
        guard let verified = lookUp(token) else { return .failure(Refusal(.invalidProviderToken)) }
        let age = now.seconds - verified.issuedAtSeconds
        if age < -Self.skewSeconds { return .failure(Refusal(.invalidProviderToken)) }
        if age > Self.lifeSeconds { return .failure(Refusal(.expiredProviderToken)) }
        guard verified.registration.environments.contains(environment) else {
            return .failure(Refusal(.badEnvironmentKeyIdInToken))
        }
        return .success((token, verified))
    }

    private mutating func lookUp(_ token: ArraySlice<UInt8>) -> Verified? {
        let bytes = Array(token)
        if let known = remembered[bytes] { return known }
        guard let verified = verify(token) else { return nil }
        if remembered.count >= Self.rememberedTokens { remembered.removeAll() }
        remembered[bytes] = verified
        return verified
    }

    /// Form, algorithm, key, signature (raw r‖s over the first two parts, RFC 7518 §3.4), issuer.
    private func verify(_ token: ArraySlice<UInt8>) -> Verified? {
        let dot = UInt8(ascii: ".")
        let parts = token.split(separator: dot, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = SimulatorBase64.decodeURL(parts[0]).flatMap({ JSONTree($0) }),
            let claims = SimulatorBase64.decodeURL(parts[1]).flatMap({ JSONTree($0) }),
            let signatureBytes = SimulatorBase64.decodeURL(parts[2]), signatureBytes.count == 64
        else { return nil }
        guard header["alg"]?.text == "ES256", let keyID = header["kid"]?.text, let entry = keys[keyID],
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signatureBytes)
        else { return nil }  // A signature that cannot be read is wrong, like any other.
        let signed = Array(token[token.startIndex..<parts[1].endIndex])
        guard entry.key.isValidSignature(signature, for: signed),
            claims["iss"]?.text == entry.registration.team,
            let issuedAt = claims["iat"]?.integer
        else { return nil }
        return Verified(registration: entry.registration, issuedAtSeconds: issuedAt)
    }

    /// A reason as an error, for `Result`.
    struct Refusal: Error {
        let reason: APNsReason
        init(_ reason: APNsReason) { self.reason = reason }
    }
}
