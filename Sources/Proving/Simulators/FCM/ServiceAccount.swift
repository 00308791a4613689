import Crypto
import CryptoExtras
public import PushModel

/// A Google service account as a developer downloads it: for tests and sandboxes (docs/push-services.md
/// §4.1).
public struct ServiceAccount: Sendable {
    /// `project_id`.
    public let project: String
    /// `private_key_id`: 40 hex digits.
    public let keyID: String
    /// `client_email`; assertions name it as `iss`.
    public let email: String
    /// PKCS#8 PEM, RSA with 2,048 bits.
    public let privateKeyPEM: String
    /// The key with which the simulator checks signatures.
    public let publicKeyPEM: String

    /// Makes a new key: some hundred milliseconds.
    ///
    /// - Throws: `.keyNotUsable`.
    public init(project: String = "acme-chat", name: String = "pusher") throws(SimulatorError) {
        do {
            let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
            privateKeyPEM = key.pkcs8PEMRepresentation
            publicKeyPEM = key.publicKey.pemRepresentation
            keyID = SymmetricKey(size: .init(bitCount: 160)).withUnsafeBytes { bytes in
                bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            }
        } catch {
            throw SimulatorError(.keyNotUsable)
        }
        self.project = project
        email = "\(name)@\(project).iam.gserviceaccount.com"
    }

    /// The text of the JSON file.
    ///
    /// - Parameter tokenURI: where access tokens are issued: ``FCMSimulator/tokenURI``.
    public func json(tokenURI: String) -> String {
        let tree: JSONTree = [
            "type": "service_account", "project_id": .string(project), "private_key_id": .string(keyID),
            "private_key": .string(privateKeyPEM), "client_email": .string(email),
            "token_uri": .string(tokenURI)
        ]
        return String(decoding: tree.bytes, as: UTF8.self)
    }

    /// This account as the project has it on file.
    public var registration: ServiceAccountRegistration {
        ServiceAccountRegistration(project: project, email: email, keyID: keyID, publicKeyPEM: publicKeyPEM)
    }

    /// A signed assertion (RS256) with these claims, for `grant_type` jwt-bearer.
    ///
    /// - Throws: `.keyNotUsable`.
    func assertion(_ claims: JSONTree, algorithm: String = "RS256") throws(SimulatorError) -> String {
        let header: JSONTree = ["alg": .string(algorithm), "typ": "JWT", "kid": .string(keyID)]
        let signed = SimulatorBase64.encodeURL(header.bytes) + "." + SimulatorBase64.encodeURL(claims.bytes)
        do {
            let key = try _RSA.Signing.PrivateKey(pemRepresentation: privateKeyPEM)
            let signature = try key.signature(
                for: SHA256.hash(data: Array(signed.utf8)), padding: .insecurePKCS1v1_5)
            return signed + "." + SimulatorBase64.encodeURL(Array(signature.rawRepresentation))
        } catch {
            throw SimulatorError(.keyNotUsable)
        }
    }
}

/// A service account as the simulated service has it on file.
public struct ServiceAccountRegistration: Sendable, Equatable {
    /// `project_id`.
    public var project: String
    /// `client_email`, by which the account is found.
    public var email: String
    /// `private_key_id`.
    public var keyID: String
    /// SubjectPublicKeyInfo in PEM, RSA.
    public var publicKeyPEM: String

    /// - Parameter publicKeyPEM: SubjectPublicKeyInfo, RSA.
    public init(project: String, email: String, keyID: String, publicKeyPEM: String) {
        self.project = project
        self.email = email
        self.keyID = keyID
        self.publicKeyPEM = publicKeyPEM
    }
}
