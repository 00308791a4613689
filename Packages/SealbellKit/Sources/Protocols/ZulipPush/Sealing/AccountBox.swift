package import Primitives
package import PushModel
import WireFormats

/// The public half of an account's pair: an X25519 key with which a box can be sealed (§14.4).
public struct PushPublicKey: Sendable, Hashable {
    /// Bytes of the key.
    public static let byteCount = 32
    let bytes: [UInt8]

    /// Reads the wire form.
    ///
    /// - Parameter base64: canonical base64 of 32 bytes.
    /// - Throws: `.invalidPushKey` for any other text, and for a point of small order: nothing that is sealed
    ///   to it is a secret.
    public init(base64: String) throws(ZulipError) {
        guard base64.utf8.count == Base64.encodedCount(Self.byteCount) else {
            throw ZulipError(.invalidPushKey)
        }
        do { bytes = try Base64.decode(base64) } catch { throw ZulipError(.invalidPushKey) }
        guard bytes.count == Self.byteCount, Self.canBeSealedTo(bytes) else {
            throw ZulipError(.invalidPushKey)
        }
    }

    /// The public half of a pair that exists.
    init(_ pair: X25519KeyPair) { bytes = pair.publicKey }

    /// The wire form, 44 characters.
    public var base64: String { Base64.text(bytes) }

    /// Any private key shows whether the point is of small order.
    private static func canBeSealedTo(_ bytes: [UInt8]) -> Bool {
        do {
            let probe = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 1, count: byteCount)))
            return bytes.withUnsafeBytes { probe.sharedSecret(with: $0) } != nil
        } catch { return false }
    }
}

/// The sealed content of a zap notification: base64 of libsodium's sealed box to the account's key (§14.9).
package enum AccountBox {
    /// Bytes beyond the plaintext: ephemeral key 32, authenticator 16.
    package static let overheadBytes = 48

    /// Seals a content with an ephemeral pair that is used for nothing else.
    ///
    /// - Returns: base64.
    /// - Throws: `.invalidPushKey`, which a ``PushPublicKey`` rules out.
    package static func seal(
        _ plain: Secret, to key: PushPublicKey, ephemeral: X25519KeyPair
    ) throws(ZulipError) -> Secret {
        let count = plain.count + overheadBytes
        // Sealed at the end of its room, and spelled over it.
        do throws(CryptoError) {
            return try Secret(count: Base64.encodedCount(count)) { room throws(CryptoError) in
                let end = UnsafeMutableRawBufferPointer(rebasing: room[(room.count - count)...])
                try SealedBox.seal(plain, to: key.bytes, ephemeral: ephemeral, into: end)
                Base64.spell(last: count, in: room)
            }
        } catch { throw ZulipError(.invalidPushKey) }
    }

    /// Seals a content.
    ///
    /// - Parameter generator: the ephemeral pair comes from here; in production the system's.
    package static func seal(
        _ plain: Secret, to key: PushPublicKey, using generator: inout some RandomNumberGenerator
    ) throws(ZulipError) -> Secret {
        let pair: X25519KeyPair
        do { pair = try X25519KeyPair(privateKey: randomSecret(X25519KeyPair.keyBytes, &generator)) } catch {
            throw ZulipError(.invalidPushKey)
        }
        return try seal(plain, to: key, ephemeral: pair)
    }

    /// Opens a content.
    ///
    /// - Parameter base64: `encrypted_content` as it came.
    /// - Throws: `.doesNotOpen`, whatever the reason.
    package static func open(_ base64: Secret, with pair: X25519KeyPair) throws(ZulipError) -> Secret {
        try base64.reveal { (text) throws(ZulipError) in
            do { return try SealedBox.open(try Base64.decode(text), with: pair) } catch {
                throw ZulipError(.doesNotOpen)
            }
        }
    }
}
