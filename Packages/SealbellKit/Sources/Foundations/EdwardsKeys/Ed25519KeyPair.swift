import Clibsodium
import Primitives
public import PushModel

/// A key pair of Ed25519 (RFC 8032): a seed, and the public key that follows from it.
public struct Ed25519KeyPair: Sendable {
    /// A seed: 32 bytes (RFC 8032 §5.1.5).
    public static let seedBytes = 32

    /// 32 bytes, the private key as RFC 8032 has it.
    public let seed: Secret
    /// What signatures of this pair are verified with: 32 bytes.
    public let publicKey: Ed25519PublicKey
    /// Seed and public key, as libsodium wants them.
    private let secretKey: Secret

    /// - Returns: `nil` unless there are exactly 32 bytes.
    public init?(seed: Secret) {
        guard seed.count == Self.seedBytes else { return nil }
        var publicBytes = [UInt8](repeating: 0, count: Ed25519PublicKey.keyBytes)
        secretKey = Secret(count: 64) { secret in
            seed.reveal { _ = crypto_sign_seed_keypair(&publicBytes, secret.octets, $0.octets) }
        }
        guard let publicKey = Ed25519PublicKey(Secret(publicBytes)) else { return nil }
        self.seed = seed
        self.publicKey = publicKey
    }

    /// Draws a new pair.
    public static func generate(using generator: inout some RandomNumberGenerator) -> Ed25519KeyPair {
        let seed = Secret(count: seedBytes) { room in
            for at in 0..<seedBytes / 8 {
                room.storeBytes(of: generator.next(), toByteOffset: 8 * at, as: UInt64.self)
            }
        }
        guard let pair = Ed25519KeyPair(seed: seed) else {
            preconditionFailure("32 bytes always form a seed")
        }
        return pair
    }

    /// Signs a text; the same text gives the same signature.
    ///
    /// - Returns: 64 bytes.
    public func signature(over text: UnsafeRawBufferPointer) -> Secret {
        Secret(count: Ed25519PublicKey.signatureBytes) { out in
            secretKey.reveal { secret in
                _ = crypto_sign_detached(out.octets, nil, text.octets, UInt64(text.count), secret.octets)
            }
        }
    }

    /// The private scalar, 32 bytes: the first half of SHA-512 of the seed, clamped (RFC 8032, §5.1.5).
    package var scalar: Secret {
        Secret(count: 32) { out in
            withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { digest in
                seed.reveal { _ = crypto_hash_sha512(digest.octets, $0.octets, UInt64($0.count)) }
                out.copyMemory(from: UnsafeRawBufferPointer(rebasing: digest[..<32]))
                wipe(digest)
            }
            out[0] &= 248
            out[31] = out[31] & 63 | 64
        }
    }
}
