import Primitives
public import PushModel
import WireFormats
public import RSAKeys

/// What a device knows of its registration: the server's three values, and where and when it stands (§3.2).
public struct DeviceRegistration: Sendable {
    /// Base64, 88 characters.
    public let deviceIdentifier: String
    /// Base64, 344 characters.
    public let signature: String
    /// With it everything that arrives is verified.
    public let userPublicKey: RSAPublicKey
    /// As it was registered, so that it can be taken back there.
    public let proxyServer: String
    public let pushTokenHash: String
    /// SHA-256 of the device's public key, in hexadecimal: with another one nothing that arrives opens.
    /// `nil`: not known, of an earlier version.
    let deviceKeyDigest: String?
    /// When the proxy took it last; `nil`: not yet.
    public internal(set) var completedAt: UnixTime?

    package init(
        deviceIdentifier: String, signature: String, userPublicKey: RSAPublicKey, proxyServer: String,
        pushTokenHash: String, deviceKeyDigest: String? = nil, completedAt: UnixTime? = nil
    ) {
        self.deviceIdentifier = deviceIdentifier
        self.signature = signature
        self.userPublicKey = userPublicKey
        self.proxyServer = proxyServer
        self.pushTokenHash = pushTokenHash
        self.deviceKeyDigest = deviceKeyDigest
        self.completedAt = completedAt
    }

    /// Whether to register again: something has changed, the proxy has not taken it yet, or it is a day old,
    /// since a server or a proxy may have forgotten a device without its knowing.
    func isDue(_ hash: String, _ proxyServer: String, _ key: RSAPublicKey, now: UnixTime) -> Bool {
        guard let completedAt, hash == pushTokenHash, proxyServer == self.proxyServer,
            Self.digest(key) == deviceKeyDigest
        else { return true }
        let age = now.since(completedAt)
        // A clock that was set back must not put it off.
        return age >= NextcloudLimits.registrationRepeat || age < .zero
    }

    package static func digest(_ key: RSAPublicKey) -> String { Hex.encode(SHA256.hash(key.der)) }

    /// The three fields that both calls to a proxy have.
    var proof: [(name: String, value: Secret)] {
        [
            ("deviceIdentifier", Secret(deviceIdentifier.utf8)),
            ("deviceIdentifierSignature", Secret(signature.utf8)),
            ("userPublicKey", Secret(userPublicKey.pem.utf8))
        ]
    }

    /// What to keep over a restart.
    public func encoded() -> Secret {
        KeptRows.write([
            [
                Secret(deviceIdentifier.utf8), Secret(signature.utf8), Secret(userPublicKey.pem.utf8),
                Secret(proxyServer.utf8), Secret(pushTokenHash.utf8),
                Secret((completedAt.map { String($0.milliseconds) } ?? "").utf8),
                Secret((deviceKeyDigest ?? "").utf8)
            ]
        ])
    }

    /// - Throws: `.malformedRow` for what ``encoded()`` has not written.
    public init(decoding kept: Secret) throws(NextcloudError) {
        guard let row = KeptRows.read(kept, atMost: NextcloudLimits.keptBytes)?.first,
            // Earlier versions wrote no digest of the device's key.
            row.count == 6 || row.count == 7,
            let key = row[2].reveal({ try? RSAPublicKey(pem: $0) })  // Then it is malformed.
        else { throw NextcloudError(.malformedRow) }
        self.init(
            deviceIdentifier: row[0].word, signature: row[1].word, userPublicKey: key,
            proxyServer: row[3].word, pushTokenHash: row[4].word,
            deviceKeyDigest: row.count == 7 && row[6].count > 0 ? row[6].word : nil,
            completedAt: Int64(row[5].word).map { UnixTime(milliseconds: $0) })
    }
}
