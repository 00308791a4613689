package import Primitives
package import PushModel
import WireFormats

/// The sealed registration: libsodium's sealed box to one of the relay's keys, in base64 (§2).
package enum RegistrationBox {
    /// Opens a registration sealed to one of the relay's keys.
    ///
    /// - Parameter sealed: base64 of ephemeral public key (32 bytes) ‖ box; at most
    ///   ``ZulipLimits/sealedRegistrationBytes`` when decoded.
    /// - Throws: `.invalidRegistration`, whatever the reason.
    package static func open(
        _ sealed: Secret, with pair: X25519KeyPair, _ form: RegistrationPlaintext.Form = .token
    ) throws(ZulipError) -> RegistrationPlaintext {
        let plain = try sealed.reveal { (text) throws(ZulipError) in
            guard let count = Base64.decodedCount(text), count <= ZulipLimits.sealedRegistrationBytes else {
                throw ZulipError(.invalidRegistration)
            }
            do { return try SealedBox.open(try Base64.decode(text), with: pair) } catch {
                throw ZulipError(.invalidRegistration)
            }
        }
        return try RegistrationPlaintext(parsing: plain, form)
    }

    /// Seals a registration with an ephemeral pair that is used for nothing else.
    ///
    /// - Returns: base64.
    /// - Throws: `.unknownBouncerKey` when the key is no key.
    package static func seal(
        _ plain: RegistrationPlaintext, to bouncerKey: [UInt8], ephemeral: X25519KeyPair
    ) throws(ZulipError) -> Secret {
        do {
            return Secret(
                Base64.encode(try SealedBox.seal(plain.serialized(), to: bouncerKey, ephemeral: ephemeral)))
        } catch { throw ZulipError(.unknownBouncerKey) }
    }
}

/// The relay's key pairs, by the exact text of their public keys (§2, "Bouncer key rotation").
package struct BouncerKeys: Sendable {
    private let pairs: [String: X25519KeyPair]

    package init(_ pairs: [X25519KeyPair]) {
        self.pairs = Dictionary(
            pairs.map { (Base64.text($0.publicKey), $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// An equivalent text that is written in another way names no key.
    package subscript(_ publicKey: String) -> X25519KeyPair? { pairs[publicKey] }

    package var publicKeys: [String] { pairs.keys.sorted() }
}
