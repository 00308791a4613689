package import EdwardsKeys
public import PushModel

/// What the holder of a subaccount may do (§5.1).
public struct SubaccountRights: OptionSet, Sendable, Hashable {
    /// The second byte of a token.
    public let rawValue: UInt8
    /// - Parameter rawValue: of all eight bits; those without a name here mean nothing.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Watching, too, asks for it.
    public static let read = SubaccountRights(rawValue: 1)
    /// To store messages.
    public static let write = SubaccountRights(rawValue: 2)
    /// To delete messages.
    public static let delete = SubaccountRights(rawValue: 4)
    /// In accounts of the same key with another prefix too.
    public static let anyPrefix = SubaccountRights(rawValue: 8)
}

/// An account that another owns, such as a group of which this phone's user is a member: the owner has signed
/// a token with a key in it, and this phone signs with that key.
public struct Subaccount: Sendable {
    enum Key: Sendable {
        case plain(Ed25519KeyPair)
        case blinded(BlindedKey)
    }

    /// Bytes of a token.
    public static let tokenBytes = 36
    /// What an admin sends to a member: 4 bytes of head, the factor, the admin's signature.
    public static let signingValueBytes = 100

    /// The account that is watched.
    public let owner: AccountID
    /// Ed25519's form of an owner's key whose account is a Session ID.
    let ownerKey: Ed25519PublicKey?
    /// prefix ‖ rights ‖ two bytes without a meaning ‖ public key.
    public let token: Secret
    /// The owner's, over the token: 64 bytes.
    public let ownerSignature: Secret
    let key: Key

    /// A member of a group takes what the admin has sent.
    ///
    /// - Parameter signingValue: 100 bytes, as ``GroupAdmin/signingValue(for:_:)`` makes them.
    /// - Throws: `.malformedSubaccount` for another length, or a signature that is not the group's for this
    ///   member.
    package init(
        signingValue: Secret, of group: AccountID, member: Ed25519KeyPair
    ) throws(SessionError) {
        guard signingValue.count == Self.signingValueBytes else { throw SessionError(.malformedSubaccount) }
        let part = { (range: Range<Int>) in
            signingValue.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
        }
        guard let key = BlindedKey(member, factor: part(4..<36)) else {
            throw SessionError(.malformedSubaccount)
        }
        let token = Self.token(head: part(0..<4), key.publicKey)
        try self.init(
            token: token, ownerSignature: part(36..<100), of: group, ownerKey: nil, key: .blinded(key))
    }

    /// A member of a group takes what the admin has sent.
    ///
    /// - Parameter signingValue: 100 bytes, as ``GroupAdmin/signingValue(for:_:)`` makes them.
    /// - Parameter memberSeed: of the member's own account, Ed25519, 32 bytes.
    /// - Throws: `.malformedKey` for a seed of another length; `.malformedSubaccount` for a value of another
    ///   length, or a signature that is not the group's for this member.
    public init(signingValue: Secret, of group: AccountID, memberSeed: Secret) throws(SessionError) {
        guard let member = Ed25519KeyPair(seed: memberSeed) else { throw SessionError(.malformedKey) }
        try self.init(signingValue: signingValue, of: group, member: member)
    }

    /// A subaccount whose token holds a key of the holder's own.
    ///
    /// - Parameter ownerKey: the owner's key as Ed25519 has it, for an owner with a Session ID.
    /// - Throws: `.malformedSubaccount` unless the token names the key, and the owner has signed it.
    package init(
        token: Secret, ownerSignature: Secret, of owner: AccountID, ownerKey: Ed25519PublicKey? = nil,
        key: Ed25519KeyPair
    ) throws(SessionError) {
        try self.init(
            token: token, ownerSignature: ownerSignature, of: owner, ownerKey: ownerKey, key: .plain(key))
    }

    private init(
        token: Secret, ownerSignature: Secret, of owner: AccountID, ownerKey: Ed25519PublicKey?, key: Key
    ) throws(SessionError) {
        (self.token, self.ownerSignature, self.owner, self.key) = (token, ownerSignature, owner, key)
        self.ownerKey = owner.isPerson ? ownerKey : nil
        guard token.count == Self.tokenBytes, isSigned else { throw SessionError(.malformedSubaccount) }
    }

    /// Whether the owner's signature holds, for a token that names the key, on which the server insists.
    private var isSigned: Bool {
        let named: Ed25519PublicKey
        switch key {
        case .plain(let pair): named = pair.publicKey
        case .blinded(let blinded): named = blinded.publicKey
        }
        guard let signer = owner.isPerson ? ownerKey : Ed25519PublicKey(owner.key),
            !owner.isPerson || EdwardsPoint.x25519(of: signer).map({ $0 == owner.key }) ?? false
        else { return false }
        return token.reveal { token in
            let rights = SubaccountRights(rawValue: token[1])
            let prefix = owner.bytes.reveal { $0[0] }
            guard rights.contains(.read), rights.contains(.anyPrefix) || token[0] == prefix,
                named.bytes.reveal({
                    constantTimeEqual($0, UnsafeRawBufferPointer(rebasing: token[4...]))
                })
            else { return false }
            return ownerSignature.reveal { signer.isValid($0, over: token) }
        }
    }

    static func token(head: Secret, _ key: Ed25519PublicKey) -> Secret {
        Secret(count: tokenBytes) { room in
            head.reveal { room.copyMemory(from: $0) }
            key.bytes.reveal { UnsafeMutableRawBufferPointer(rebasing: room[4...]).copyMemory(from: $0) }
        }
    }
}

extension Subaccount.Key {
    /// - Returns: 64 bytes; `nil` only for a nonce of zero, which nobody will meet.
    func signature(over text: UnsafeRawBufferPointer) -> Secret? {
        switch self {
        case .plain(let pair): pair.signature(over: text)
        case .blinded(let key):
            key.signature(over: text, nonceKey: "SubaccountSig", seedKey: "SubaccountSeed")
        }
    }
}

/// The admin of a group, who lets members watch it (§5.1).
public struct GroupAdmin: Sendable {
    /// The group's own.
    public let key: SessionAccountKey

    /// - Parameter seed: the group's, 32 bytes.
    /// - Throws: `.malformedKey` for another length.
    public init(seed: Secret) throws(SessionError) { key = try SessionAccountKey(seed: seed, .group) }

    /// What a member gets: head ‖ factor ‖ signature, 100 bytes. The same member gets the same.
    ///
    /// - Throws: `.malformedKey` for an account that is no Session ID.
    public func signingValue(
        for member: AccountID, _ rights: SubaccountRights = [.read, .write]
    ) throws(SessionError) -> Secret {
        guard member.isPerson else { throw SessionError(.malformedKey) }
        let mask = ScalarHash.blake2b(
            [key.pair.seed], key: Secret("SessionGroupSubaccountMask".utf8), count: 32)
        let factor = EdwardsScalar.reduced(
            ScalarHash.blake2b([member.bytes, key.account.bytes], key: mask, count: 64))
        guard let blinded = BlindedKey.publicKey(ofMember: member.key, factor: factor) else {
            throw SessionError(.malformedKey)
        }
        let head = Secret([SessionAccountKey.groupPrefix, rights.rawValue, 0, 0])
        let signature = Subaccount.token(head: head, blinded).reveal { key.pair.signature(over: $0) }
        return Secret(count: Subaccount.signingValueBytes) { room in
            var at = 0
            for part in [head, factor, signature] {
                part.reveal { UnsafeMutableRawBufferPointer(rebasing: room[at...]).copyMemory(from: $0) }
                at += part.count
            }
        }
    }
}
