import libsecp256k1
public import Primitives
public import PushModel

/// A key pair of secp256k1: a scalar of 1 to n − 1 and its public point.
public struct Secp256k1KeyPair: Sendable {
    /// The scalar.
    public static let secretBytes = 32
    /// A signature of BIP-340: R ‖ s.
    public static let signatureBytes = 64

    /// The scalar, 32 bytes, big-endian.
    public let secret: Secret
    /// What others know: the X coordinate.
    public let publicKey: XOnlyKey
    /// The public point with both its coordinates.
    public let point: PublicPoint
    /// The library's own form of the pair, so that signing need not multiply for the public key each time.
    private let pair: Secret

    /// Computes the public key.
    ///
    /// - Throws: `.malformedKey` unless there are 32 bytes, not zero and below the order of the curve.
    public init(secret: Secret) throws(CryptoError) {
        guard secret.count == Self.secretBytes else { throw CryptoError(.malformedKey) }
        let context = Secp256k1.context
        let pair = try Secret(count: MemoryLayout<secp256k1_keypair>.size) { out throws(CryptoError) in
            let pair = out.baseAddress!.assumingMemoryBound(to: secp256k1_keypair.self)
            guard secret.reveal({ secp256k1_keypair_create(context, pair, $0.octets) }) == 1 else {
                throw CryptoError(.malformedKey)
            }
        }
        let x = pair.reveal { raw in
            [UInt8](unsafeUninitializedCapacity: XOnlyKey.byteCount) { out, count in
                var key = secp256k1_xonly_pubkey()
                _ = secp256k1_keypair_xonly_pub(
                    context, &key, nil, raw.baseAddress!.assumingMemoryBound(to: secp256k1_keypair.self))
                _ = secp256k1_xonly_pubkey_serialize(context, out.baseAddress!, &key)
                count = XOnlyKey.byteCount
            }
        }
        guard let publicKey = XOnlyKey(x) else { throw CryptoError(.malformedKey) }
        self.secret = secret
        self.publicKey = publicKey
        point = pair.reveal { raw in
            var point = secp256k1_pubkey()
            _ = secp256k1_keypair_pub(
                context, &point, raw.baseAddress!.assumingMemoryBound(to: secp256k1_keypair.self))
            return PublicPoint(point)
        }
        self.pair = pair
    }

    /// Makes a pair from the world's randomness.
    package static func generate(_ world: World) -> Secp256k1KeyPair {
        // A draw fails once in 2^128; four in a row would be a broken generator.
        for _ in 0..<4 {
            let scalar = Secret(count: secretBytes) { $0.copyBytes(from: world.randomBytes(secretBytes)) }
            if let pair = try? Secp256k1KeyPair(secret: scalar) { return pair }
        }
        preconditionFailure("the source of randomness yields no private key")
    }

    /// The X of the product of our scalar and the peer's point with even Y: 32 bytes, neither hashed nor with
    /// a parity. Our own point's parity makes no difference, for negating a scalar keeps the product's X.
    public func sharedX(with peer: XOnlyKey) -> Secret { sharedX(with: peer.point) }

    func sharedX(with peer: HeldPoint) -> Secret {
        Secret(count: 32) { out in
            let result = secret.reveal { scalar in
                withUnsafePointer(to: peer.point) { point in
                    secp256k1_ecdh(
                        Secp256k1.context, out.octets, point, scalar.octets,
                        { out, x, _, _ in
                            guard let out, let x else { return 0 }
                            out.update(from: x, count: 32)
                            return 1
                        }, nil)
                }
            }
            precondition(result == 1, "a valid scalar times a valid point has an X")
        }
    }

    /// Signs a digest (BIP-340, "Default Signing").
    ///
    /// - Parameter digest: 32 bytes. `auxiliary`: 32 bytes, random in use. Another length is a bug of ours.
    /// - Returns: 64 bytes.
    public func sign(_ digest: [UInt8], auxiliary: [UInt8]) -> [UInt8] {
        precondition(digest.count == 32 && auxiliary.count == 32)
        return [UInt8](unsafeUninitializedCapacity: Self.signatureBytes) { out, count in
            let result = pair.reveal { raw in
                secp256k1_schnorrsig_sign32(
                    Secp256k1.context, out.baseAddress!, digest,
                    raw.baseAddress!.assumingMemoryBound(to: secp256k1_keypair.self), auxiliary)
            }
            precondition(result == 1, "a valid key pair signs")
            count = Self.signatureBytes
        }
    }
}
