import Clibsodium
public import PushModel

/// ChaCha20-Poly1305 (RFC 8439 §2.8) with a nonce of 12 bytes: too short to be drawn at random for one key
/// more than once, so each key here serves one message.
public enum ChaCha20Poly1305 {
    public static let keyBytes = 32
    public static let nonceBytes = 12
    /// The authenticator stands behind the ciphertext.
    public static let overheadBytes = 16

    /// Seals into memory of the caller: `plain.count + overheadBytes` bytes at `out`.
    ///
    /// - Parameter key: exactly 32 bytes. `nonce`: exactly 12. Another length is a bug of ours.
    package static func seal(
        _ plain: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
        into out: UnsafeMutableRawBufferPointer
    ) {
        precondition(
            key.count == keyBytes && nonce.count == nonceBytes && out.count == plain.count + overheadBytes)
        Sodium.prepare()
        _ = crypto_aead_chacha20poly1305_ietf_encrypt(
            out.octets, nil, plain.octets, UInt64(plain.count), nil, 0, nil, nonce.octets, key.octets)
    }

    /// Opens into memory of the caller: `sealed.count - overheadBytes` bytes at `out`. False when it does not
    /// open; then nothing was written but zeros.
    package static func open(
        _ sealed: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
        into out: UnsafeMutableRawBufferPointer
    ) -> Bool {
        precondition(key.count == keyBytes && nonce.count == nonceBytes)
        guard sealed.count >= overheadBytes, out.count == sealed.count - overheadBytes else { return false }
        Sodium.prepare()
        return crypto_aead_chacha20poly1305_ietf_decrypt(
            out.octets, nil, nil, sealed.octets, UInt64(sealed.count), nil, 0, nonce.octets, key.octets) == 0
    }

    /// - Throws: `.malformedKey` when key or nonce have a wrong length.
    public static func seal(_ plain: Secret, key: Secret, nonce: [UInt8]) throws(CryptoError) -> Secret {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        return Secret(count: plain.count + overheadBytes) { out in
            plain.reveal { plain in
                key.reveal { key in
                    nonce.withUnsafeBytes { seal(plain, key: key, nonce: $0, into: out) }
                }
            }
        }
    }

    /// - Throws: `.malformedKey` for a wrong length of key or nonce; `.doesNotOpen` for anything else.
    public static func open(_ sealed: Secret, key: Secret, nonce: [UInt8]) throws(CryptoError) -> Secret {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        guard sealed.count >= overheadBytes else { throw CryptoError(.doesNotOpen) }
        return try Secret(count: sealed.count - overheadBytes) { out throws(CryptoError) in
            let isOpen = sealed.reveal { sealed in
                key.reveal { key in
                    nonce.withUnsafeBytes { open(sealed, key: key, nonce: $0, into: out) }
                }
            }
            guard isOpen else { throw CryptoError(.doesNotOpen) }
        }
    }
}

/// The bare stream cipher ChaCha20 (RFC 8439 §2.4), from block 0. It authenticates nothing.
public enum ChaCha20 {
    public static let keyBytes = 32
    public static let nonceBytes = 12

    /// The same for a secret.
    ///
    /// - Throws: `.malformedKey` when key or nonce have a wrong length.
    public static func apply(_ input: Secret, key: Secret, nonce: [UInt8]) throws(CryptoError) -> Secret {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        return Secret(count: input.count) { out in
            input.reveal { input in
                key.reveal { key in nonce.withUnsafeBytes { apply(input, key: key, nonce: $0, into: out) } }
            }
        }
    }

    /// Writes `input` xor the key stream; the two may be the same memory.
    ///
    /// - Parameter key: exactly 32 bytes. `nonce`: exactly 12. Another length is a bug of ours.
    package static func apply(
        _ input: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
        into out: UnsafeMutableRawBufferPointer
    ) {
        precondition(key.count == keyBytes && nonce.count == nonceBytes && out.count == input.count)
        Sodium.prepare()
        _ = crypto_stream_chacha20_ietf_xor(
            out.octets, input.octets, UInt64(input.count), nonce.octets, key.octets)
    }
}
