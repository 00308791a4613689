package import EdwardsKeys
public import PushModel

/// The key of an account that this phone owns: a user's, or a group's in the hands of its admin.
public struct SessionAccountKey: Sendable {
    /// Whose key it is.
    public enum Kind: Sendable, Hashable {
        /// A Session ID: `05` and the key as X25519 has it.
        case user
        /// `03` and the key as Ed25519 has it.
        case group
    }

    /// What others write to: 33 bytes.
    public let account: AccountID
    package let pair: Ed25519KeyPair

    /// - Parameter seed: of Ed25519, 32 bytes.
    /// - Throws: `.malformedKey` for another length.
    public init(seed: Secret, _ kind: Kind = .user) throws(SessionError) {
        guard let pair = Ed25519KeyPair(seed: seed) else { throw SessionError(.malformedKey) }
        try self.init(pair, kind)
    }

    /// - Throws: `.malformedKey` for a key that X25519 has no form of.
    package init(_ pair: Ed25519KeyPair, _ kind: Kind = .user) throws(SessionError) {
        let isPerson = kind == .user
        guard let key = isPerson ? EdwardsPoint.x25519(of: pair.publicKey) : pair.publicKey.bytes,
            let account = AccountID(isPerson ? AccountID.personPrefix : Self.groupPrefix, key)
        else { throw SessionError(.malformedKey) }
        self.account = account
        self.pair = pair
    }

    static let groupPrefix: UInt8 = 0x03
}

extension AccountID {
    /// A prefix and a key. - Returns: `nil` unless the key has 32 bytes.
    init?(_ prefix: UInt8, _ key: Secret) {
        guard key.count == SessionLimits.accountBytes - 1 else { return nil }
        self.init(
            Secret(count: SessionLimits.accountBytes) { room in
                room[0] = prefix
                key.reveal { UnsafeMutableRawBufferPointer(rebasing: room[1...]).copyMemory(from: $0) }
            })
    }

    var isPerson: Bool { prefix == AccountID.personPrefix }
}
