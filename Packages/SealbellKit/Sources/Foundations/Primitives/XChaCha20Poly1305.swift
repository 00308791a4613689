import Clibsodium
public import PushModel

/// XChaCha20-Poly1305 with associated data, as libsodium has it (`crypto_aead_xchacha20poly1305_ietf`).
///
/// The nonce is long enough to be drawn at random or to be counted from a random start.
public enum XChaCha20Poly1305 {
    public static let keyBytes = 32
    public static let nonceBytes = 24
    /// The authenticator stands behind the ciphertext.
    public static let overheadBytes = 16

    /// Seals into memory of the caller: `plain.count + overheadBytes` bytes at `out`. For hot paths.
    ///
    /// - Parameter key: exactly 32 bytes. `nonce`: exactly 24. Another length is a bug of ours.
    package static func seal(
        _ plain: UnsafeRawBufferPointer, with associated: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) {
        precondition(
            key.count == keyBytes && nonce.count == nonceBytes && out.count == plain.count + overheadBytes)
        Sodium.prepare()
        _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
            out.octets, nil, plain.octets, UInt64(plain.count), associated.octets, UInt64(associated.count),
            nil, nonce.octets, key.octets)
    }

    /// Opens into memory of the caller: `sealed.count - overheadBytes` bytes at `out`. False when it does not
    /// open; then nothing was written but zeros.
    package static func open(
        _ sealed: UnsafeRawBufferPointer, with associated: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) -> Bool {
        precondition(key.count == keyBytes && nonce.count == nonceBytes)
        guard sealed.count >= overheadBytes, out.count == sealed.count - overheadBytes else { return false }
        Sodium.prepare()
        return crypto_aead_xchacha20poly1305_ietf_decrypt(
            out.octets, nil, nil, sealed.octets, UInt64(sealed.count), associated.octets,
            UInt64(associated.count), nonce.octets, key.octets) == 0
    }

    /// - Throws: `.malformedKey` when key or nonce have a wrong length.
    public static func seal(
        _ plain: Secret, with associated: [UInt8], key: Secret, nonce: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        return [UInt8](unsafeUninitializedCapacity: plain.count + overheadBytes) { out, count in
            count = plain.count + overheadBytes
            let room = UnsafeMutableRawBufferPointer(start: out.baseAddress!, count: count)
            plain.reveal { plain in
                key.reveal { key in
                    associated.withUnsafeBytes { associated in
                        nonce.withUnsafeBytes { nonce in
                            seal(plain, with: associated, key: key, nonce: nonce, into: room)
                        }
                    }
                }
            }
        }
    }

    /// - Throws: `.malformedKey` for a wrong length of key or nonce; `.doesNotOpen` for anything else.
    public static func open(
        _ sealed: [UInt8], with associated: [UInt8], key: Secret, nonce: [UInt8]
    ) throws(CryptoError) -> Secret {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        guard sealed.count >= overheadBytes else { throw CryptoError(.doesNotOpen) }
        return try Secret(count: sealed.count - overheadBytes) { out throws(CryptoError) in
            let opened = key.reveal { key in
                sealed.withUnsafeBytes { sealed in
                    associated.withUnsafeBytes { associated in
                        nonce.withUnsafeBytes { nonce in
                            open(sealed, with: associated, key: key, nonce: nonce, into: out)
                        }
                    }
                }
            }
            guard opened else { throw CryptoError(.doesNotOpen) }
        }
    }
}
