import Crypto
public import PushModel

/// One of APNs' two worlds. A device token lives in one of them (docs/push-services.md §2.1).
public enum APNsEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Of the App Store and TestFlight.
    case production
    /// Of builds that are signed for development.
    case sandbox
}

/// A signing key as a developer downloads it: for tests and sandboxes.
public struct APNsKey: Sendable {
    /// Ten characters each.
    public let team: String
    /// `kid` of its tokens: ten characters.
    public let keyID: String
    /// The text of the `.p8` file: PKCS#8 PEM, P-256.
    public let privateKeyPEM: String
    /// The key with which the simulator checks signatures.
    public let publicKeyPEM: String

    /// Makes a new key.
    public init(team: String = "A1B2C3D4E5", keyID: String = "F6G7H8I9J0") {
        let key = P256.Signing.PrivateKey()
        self.team = team
        self.keyID = keyID
        privateKeyPEM = key.pemRepresentation
        publicKeyPEM = key.publicKey.pemRepresentation
    }

    /// Reads the text of a `.p8` file.
    ///
    /// - Throws: `.keyNotUsable`.
    public init(team: String, keyID: String, privateKeyPEM: String) throws(SimulatorError) {
        do {
            let key = try P256.Signing.PrivateKey(pemRepresentation: privateKeyPEM)
            self.team = team
            self.keyID = keyID
            self.privateKeyPEM = privateKeyPEM
            publicKeyPEM = key.publicKey.pemRepresentation
        } catch {
            throw SimulatorError(.keyNotUsable)
        }
    }

    /// This key as the account has it on file.
    ///
    /// - Parameter bundles: the bundle ids it may push for; `nil` for a key of the whole team.
    public func registration(
        bundles: Set<String>? = nil, environments: Set<APNsEnvironment> = [.production, .sandbox]
    ) -> APNsKeyRegistration {
        APNsKeyRegistration(
            team: team, keyID: keyID, publicKeyPEM: publicKeyPEM, bundles: bundles, environments: environments
        )
    }

    /// A provider token: `{"alg":"ES256","kid":…}.{"iss":…,"iat":…}` signed ES256 (docs/push-services.md
    /// §2.2).
    ///
    /// - Parameter issuedAtSeconds: `iat`, Unix seconds.
    /// - Throws: `.keyNotUsable`.
    public func providerToken(issuedAtSeconds: Int64) throws(SimulatorError) -> String {
        let header: JSONTree = ["alg": "ES256", "kid": .string(keyID)]
        let claims: JSONTree = ["iss": .string(team), "iat": .number(issuedAtSeconds)]
        let signed = SimulatorBase64.encodeURL(header.bytes) + "." + SimulatorBase64.encodeURL(claims.bytes)
        do {
            let key = try P256.Signing.PrivateKey(pemRepresentation: privateKeyPEM)
            let signature = try key.signature(for: Array(signed.utf8))
            return signed + "." + SimulatorBase64.encodeURL(Array(signature.rawRepresentation))
        } catch {
            throw SimulatorError(.keyNotUsable)
        }
    }
}

/// A key as the simulated service has it on file.
public struct APNsKeyRegistration: Sendable, Equatable {
    /// `iss` of its tokens: ten characters.
    public var team: String
    /// `kid` of its tokens: ten characters.
    public var keyID: String
    /// SubjectPublicKeyInfo in PEM, P-256.
    public var publicKeyPEM: String
    /// The bundle ids it may push for; `nil`: all of the team's.
    public var bundles: Set<String>?
    /// Where it may push.
    public var environments: Set<APNsEnvironment>

    /// - Parameter publicKeyPEM: SubjectPublicKeyInfo, P-256.
    /// - Parameter bundles: `nil`: all of the team's.
    public init(
        team: String, keyID: String, publicKeyPEM: String, bundles: Set<String>?,
        environments: Set<APNsEnvironment>
    ) {
        self.team = team
        self.keyID = keyID
        self.publicKeyPEM = publicKeyPEM
        self.bundles = bundles
        self.environments = environments
    }

    /// Whether one connection may carry both: the same key, or two keys of one whole team, as in a rotation.
    func isRelated(to other: APNsKeyRegistration) -> Bool {
        keyID == other.keyID || (team == other.team && bundles == nil && other.bundles == nil)
    }
}
