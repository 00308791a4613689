import Primitives
package import PushModel
import WireFormats
package import RSAKeys

/// What a device knows of its registration: the server's three values, and where and when it stands (§3.2).
package struct DeviceRegistration: Sendable {
    /// Base64, 88 characters.
    package let deviceIdentifier: String
    /// Base64, 344 characters.
    package let signature: String
    /// With it everything that arrives is verified.
    package let userPublicKey: RSAPublicKey
    /// As it was registered, so that it can be taken back there.
    package let proxyServer: String
    package let pushTokenHash: String
    /// SHA-256 of the device's package key, in hexadecimal: with another one nothing that arrives opens.
    /// `nil`: not known.
    let deviceKeyDigest: String?
    /// When the proxy took it last; `nil`: not yet.
    package internal(set) var completedAt: UnixTime?

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

    /// Seven cells of a kept row.
    var cells: [Secret] {
        let texts = [deviceIdentifier, signature, userPublicKey.pem, proxyServer, pushTokenHash]
        return texts.map { Secret(cell: $0) } + [
            Secret(cell: completedAt), Secret(cell: deviceKeyDigest ?? "")
        ]
    }

    /// - Returns: `nil` for what ``cells`` has not written.
    init?(cells: [Secret]) {
        // A text that is no key was not written here.
        guard cells.count == 7, let key = cells[2].reveal({ try? RSAPublicKey(pem: $0) }),
            let completedAt = cells[5].moment
        else { return nil }
        self.init(
            deviceIdentifier: cells[0].word, signature: cells[1].word, userPublicKey: key,
            proxyServer: cells[3].word, pushTokenHash: cells[4].word,
            deviceKeyDigest: cells[6].count > 0 ? cells[6].word : nil, completedAt: completedAt)
    }
}
