import Clibsodium
import Primitives
public import PushModel

/// A member's key of Ed25519, multiplied by a number that somebody else has chosen: the public product hides
/// whose key it is, and only the member can sign for it.
public struct BlindedKey: Sendable {
    /// The product k·T, where T is the member's public key with its sign cleared.
    public let publicKey: Ed25519PublicKey
    private let scalar: Secret
    private let seed: Secret

    /// - Parameter factor: 32 bytes, little-endian.
    /// - Returns: `nil` for another length, and for a factor that is a multiple of the group's order.
    public init?(_ member: Ed25519KeyPair, factor: Secret) {
        guard factor.count == EdwardsScalar.byteCount else { return nil }
        let isNegative = member.publicKey.bytes.reveal { $0[31] & 0x80 != 0 }
        let own = isNegative ? EdwardsScalar.negated(member.scalar) : member.scalar
        scalar = EdwardsScalar.product(factor, own)
        guard let point = EdwardsScalar.basePoint(times: scalar), let key = Ed25519PublicKey(point) else {
            return nil
        }
        publicKey = key
        seed = member.seed
    }

    /// The public product alone, for whoever chooses the factor and knows the member's public key.
    ///
    /// - Parameter x25519: the member's key as X25519 has it, which has no sign: T is the point of sign 0
    ///   that belongs to it.
    /// - Returns: `nil` for what is no point of the group, or a factor of no use.
    package static func publicKey(ofMember x25519: Secret, factor: Secret) -> Ed25519PublicKey? {
        guard factor.count == EdwardsScalar.byteCount, let point = EdwardsPoint.unsigned(x25519: x25519)
        else { return nil }
        var isPoint = false
        let product = Secret(count: Ed25519PublicKey.keyBytes) { out in
            isPoint =
                factor.reveal { factor in
                    point.reveal { crypto_scalarmult_ed25519_noclamp(out.octets, factor.octets, $0.octets) }
                } == 0
        }
        return isPoint ? Ed25519PublicKey(product) : nil
    }

    /// Signs a text. The nonce is drawn from seed, key and text, so that the same text gives the same
    /// signature, which verifies as any of Ed25519 does.
    ///
    /// - Parameter nonceKey: the word that sets these nonces apart from other uses of the seed, and
    ///   `seedKey` the one that the seed is hashed with; at most 64 bytes each.
    /// - Returns: 64 bytes; `nil` only for a nonce that is zero, which nobody will meet.
    package func signature(
        over text: UnsafeRawBufferPointer, nonceKey: StaticString, seedKey: StaticString
    ) -> Secret? {
        let text = Secret(copying: text)
        let hashedSeed = ScalarHash.blake2b([seed], key: Self.word(seedKey), count: 32)
        let nonce = EdwardsScalar.reduced(
            ScalarHash.blake2b([hashedSeed, publicKey.bytes, text], key: Self.word(nonceKey), count: 64))
        guard let point = EdwardsScalar.basePoint(times: nonce) else { return nil }
        let challenge = EdwardsScalar.reduced(ScalarHash.sha512([point, publicKey.bytes, text]))
        let answer = EdwardsScalar.sum(nonce, EdwardsScalar.product(challenge, scalar))
        return Secret(count: Ed25519PublicKey.signatureBytes) { out in
            point.reveal { out.copyMemory(from: $0) }
            answer.reveal { UnsafeMutableRawBufferPointer(rebasing: out[32...]).copyMemory(from: $0) }
        }
    }

    private static func word(_ word: StaticString) -> Secret {
        Secret(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}
