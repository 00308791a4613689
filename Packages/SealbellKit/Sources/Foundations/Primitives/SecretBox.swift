import Clibsodium
public import PushModel

/// libsodium's secret box, `crypto_secretbox_easy`: XSalsa20-Poly1305, the authenticator (16 bytes) first.
///
/// The nonce is not part of the box; where a protocol sends it in front, the caller joins the two.
public enum SecretBox {
    public static let keyBytes = 32
    public static let nonceBytes = 24
    public static let overheadBytes = 16

    /// - Parameter nonce: 24 bytes, never used twice with one key.
    /// - Throws: `.malformedKey` when key or nonce have another length.
    public static func seal(
        _ plain: Secret, key: Secret, nonce: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        Sodium.prepare()
        return [UInt8](unsafeUninitializedCapacity: plain.count + overheadBytes) { out, count in
            key.reveal { key in
                plain.reveal { plain in
                    _ = crypto_secretbox_easy(
                        out.baseAddress!, plain.octets, UInt64(plain.count), nonce,
                        key.octets)
                }
            }
            count = plain.count + overheadBytes
        }
    }

    /// - Throws: `.malformedKey` for a wrong length of key or nonce; `.doesNotOpen` for anything else.
    public static func open(
        _ sealed: UnsafeRawBufferPointer, key: Secret, nonce: UnsafeRawBufferPointer
    ) throws(CryptoError) -> Secret {
        guard key.count == keyBytes, nonce.count == nonceBytes else { throw CryptoError(.malformedKey) }
        guard sealed.count >= overheadBytes else { throw CryptoError(.doesNotOpen) }
        Sodium.prepare()
        return try Secret(count: sealed.count - overheadBytes) { out throws(CryptoError) in
            let result = key.reveal { key in
                crypto_secretbox_open_easy(
                    out.octets, sealed.octets, UInt64(sealed.count), nonce.octets, key.octets)
            }
            guard result == 0 else { throw CryptoError(.doesNotOpen) }
        }
    }

    public static func open(
        _ sealed: [UInt8], key: Secret, nonce: [UInt8]
    ) throws(CryptoError) -> Secret {
        try withBytes(sealed) { sealed throws(CryptoError) in
            try withBytes(nonce) { nonce throws(CryptoError) in try open(sealed, key: key, nonce: nonce) }
        }
    }
}
