import PushModel
public import RSAKeys
import WireFormats

/// Which app password of which user a registration belongs to: what a device identifier stands for (§4.2).
public struct AppPasswordIdentity: Sendable, Hashable {
    /// `<user id>@<host[:port][/path]>`; of an instance without TLS the `http://` stays in.
    public let cloudID: String
    /// The number of the app password at its server.
    public let tokenID: Int64

    /// - Parameter cloudID: see ``cloudID(user:serverURL:)``.
    /// - Parameter tokenID: number of the app password at its server.
    public init(cloudID: String, tokenID: Int64) {
        self.cloudID = cloudID
        self.tokenID = tokenID
    }

    /// The cloud id of a user at a server.
    ///
    /// - Parameter serverURL: such as `https://cloud.example.org/nextcloud`; final slashes do not count.
    public static func cloudID(user: String, serverURL: String) -> String {
        let server = serverURL.withoutFinalSlashes
        let scheme = "https://".utf8
        guard server.utf8.starts(with: scheme) else { return user + "@" + server }
        return user + "@" + String(Substring(server.utf8.dropFirst(scheme.count)))
    }

    /// `["<cloud id>",<token id>]`, as PHP writes it.
    package var preimage: [UInt8] {
        var text = PHPText()
        text.raw("[")
        text.string(cloudID)
        text.raw(",")
        text.int(tokenID)
        text.raw("]")
        return text.bytes
    }

    /// Base64 of the preimage's SHA-512, 88 characters. It is no secret, and it can be guessed: an id and a
    /// small number are all that is in it.
    public var deviceIdentifier: String {
        let identifier = preimage.withUnsafeBytes { DeviceIdentifier(hashing: $0) }
        return String(decoding: identifier.base64, as: UTF8.self)
    }

    /// Base64 of the user's signature over the preimage, 344 characters. Whoever holds the identifier
    /// verifies it over the identifier's 64 bytes as the digest; hashed once more it never verifies.
    ///
    /// - Throws: `.sealingFailed` when the library refuses the key.
    public func signature(by key: RSAPrivateKey) throws(NextcloudError) -> String {
        do {
            return Base64.text(
                try withBytes(preimage) { (bytes) throws(RSAError) in try key.sign(bytes) })
        } catch { throw NextcloudError(.sealingFailed) }
    }
}

extension String {
    /// A URL to which a path can be appended.
    var withoutFinalSlashes: String {
        var text = self[...]
        while text.utf8.last == UInt8(ascii: "/") { text.removeLast() }
        return String(text)
    }
}
