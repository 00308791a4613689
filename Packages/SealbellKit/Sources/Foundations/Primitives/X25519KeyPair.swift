import Clibsodium
public import PushModel

/// A key pair of Curve25519 (RFC 7748): 32 private bytes and the 32 public bytes that follow from them.
public struct X25519KeyPair: Sendable {
    public static let keyBytes = 32

    public let privateKey: Secret
    /// 32 bytes; may be shown to anybody.
    public let publicKey: [UInt8]

    /// Computes the public key.
    ///
    /// - Throws: `.malformedKey` unless there are exactly 32 bytes.
    public init(privateKey: Secret) throws(CryptoError) {
        guard privateKey.count == Self.keyBytes else { throw CryptoError(.malformedKey) }
        Sodium.prepare()
        self.privateKey = privateKey
        publicKey = privateKey.reveal { scalar in
            [UInt8](unsafeUninitializedCapacity: Self.keyBytes) { out, count in
                _ = crypto_scalarmult_base(out.baseAddress!, scalar.octets)
                count = Self.keyBytes
            }
        }
    }

    /// Makes a pair from the world's randomness.
    package static func generate(_ world: World) -> X25519KeyPair {
        let scalar = Secret(count: keyBytes) { $0.copyBytes(from: world.randomBytes(keyBytes)) }
        do { return try X25519KeyPair(privateKey: scalar) } catch {
            preconditionFailure("32 bytes always form a private key")
        }
    }
}
