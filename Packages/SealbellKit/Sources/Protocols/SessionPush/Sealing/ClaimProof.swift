import EdwardsKeys
import PushModel

/// Whether a claim was signed by somebody who may sign for the account (§3.1, §5).
enum ClaimProof {
    /// Who signed. Limits and allowances are counted for each signer, because a group is one account with a
    /// hundred members (docs/decisions/0095).
    struct Signer: Sendable {
        /// The account's own key, a subaccount's, or that of the withdrawn scheme; 32 bytes.
        let key: Secret
        /// Of the withdrawn scheme, which no storage server accepts.
        var isSubkey = false
    }

    /// The signer that a claim names, which is not proved yet.
    static func claimedKey(_ claim: SessionClaim) -> Secret {
        if let subaccount = claim.subaccount { return key(in: subaccount.token) }
        return claim.sessionKey ?? claim.account.key
    }

    /// The key inside a subaccount token: prefix, flags, two reserved bytes, key (§5.1).
    private static func key(in token: Secret) -> Secret {
        token.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[4...])) }
    }

    /// - Parameter takesSubkeys: whether the withdrawn scheme is accepted.
    /// - Throws: `.keyMismatch`, `.subaccountRefused`, `.signatureMismatch`.
    static func verify(
        _ claim: SessionClaim, over text: Secret, takesSubkeys: Bool
    ) throws(SessionError) -> Signer {
        let owner = try owner(of: claim)
        if let subaccount = claim.subaccount {
            let key = try key(of: subaccount, prefix: claim.account.prefix, owner)
            guard isValid(claim.signature, over: text, key) else { throw SessionError(.signatureMismatch) }
            return Signer(key: key.bytes)
        }
        if takesSubkeys, let tag = claim.subkeyTag, let key = SubkeyTag.verifyingKey(tag, of: owner),
            isValid(claim.signature, over: text, key)
        {
            return Signer(key: key.bytes, isSubkey: true)
        }
        // A tag that does not match proves nothing: deployed servers have never checked it.
        guard isValid(claim.signature, over: text, owner) else { throw SessionError(.signatureMismatch) }
        return Signer(key: owner.bytes)
    }

    /// The key of an account: a person sends it, and it must belong to the account id; for other accounts the
    /// id holds it.
    private static func owner(of claim: SessionClaim) throws(SessionError) -> Ed25519PublicKey {
        guard let shown = claim.sessionKey else {
            guard let key = Ed25519PublicKey(claim.account.key) else { throw SessionError(.keyMismatch) }
            return key
        }
        // Refuses values that are not points of the curve, and points of small order.
        guard let key = Ed25519PublicKey(shown), let montgomery = EdwardsPoint.x25519(of: key),
            montgomery == claim.account.key
        else { throw SessionError(.keyMismatch) }
        return key
    }

    private static let mayRead: UInt8 = 1
    private static let anyPrefix: UInt8 = 8

    private static func key(
        of subaccount: SessionClaim.Subaccount, prefix: UInt8, _ owner: Ed25519PublicKey
    ) throws(SessionError) -> Ed25519PublicKey {
        let (tokenPrefix, flags) = subaccount.token.reveal { ($0[0], $0[1]) }
        guard flags & mayRead != 0, tokenPrefix == prefix || flags & anyPrefix != 0,
            isValid(subaccount.signature, over: subaccount.token, owner),
            let key = Ed25519PublicKey(key(in: subaccount.token))
        else { throw SessionError(.subaccountRefused) }
        return key
    }

    private static func isValid(_ signature: Secret, over text: Secret, _ key: Ed25519PublicKey) -> Bool {
        signature.reveal { signature in text.reveal { key.isValid(signature, over: $0) } }
    }
}

/// The seed's `subkey_tag` (§5.2), withdrawn by the project, because issuing such a key may reveal the
/// account's own key to its holder.
package enum SubkeyTag {
    private static let hashKey = Secret("OxenSSSubkey".utf8)

    /// D = m·A, where m = ((c + BLAKE2b(c ‖ A)) mod 2^256) mod L.
    ///
    /// - Returns: `nil` if A or the product is not a point of the group.
    static func verifyingKey(_ tag: Secret, of account: Ed25519PublicKey) -> Ed25519PublicKey? {
        let hash = ScalarHash.blake2b([tag, account.bytes], key: hashKey, count: EdwardsScalar.byteCount)
        let sum = Secret(count: 2 * EdwardsScalar.byteCount) { out in
            tag.reveal { tag in hash.reveal { add($0, tag, into: out) } }
        }
        return EdwardsPoint.product(EdwardsScalar.reduced(sum), account)
    }

    /// The sum of two little-endian numbers of 32 bytes. The last carry is dropped, as in the issuers'
    /// library; the upper half stays zero.
    private static func add(
        _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer,
        into out: UnsafeMutableRawBufferPointer
    ) {
        var carry: UInt16 = 0
        for at in 0..<EdwardsScalar.byteCount {
            carry += UInt16(left[at]) + UInt16(right[at])
            out[at] = UInt8(truncatingIfNeeded: carry)
            carry >>= 8
        }
    }
}
