import EdwardsKeys
import PushModel
import WireFormats

/// An account that a phone wants pushes of, and the key that proves it may.
public struct WatchedAccount: Sendable {
    /// Whether the message itself is to be in the push.
    public enum Content: Sendable, Hashable {
        /// Where it has room: the phone shows it without a network.
        case included
        /// The phone fetches it.
        case leftOut
    }

    private enum Holder: Sendable {
        case owner(SessionAccountKey)
        case subaccount(Subaccount)
    }

    /// Whose messages are watched.
    public let account: AccountID
    /// Ascending, each once.
    public let namespaces: [Int16]
    /// Whether messages come with the push, where they are short enough.
    public let content: Content
    private let holder: Holder

    /// What a deployed app watches of its own account: messages, profile, contacts, read state, groups.
    public static let userNamespaces: [Int16] = [0, 2, 3, 4, 5]
    /// The same of a group: what removed members are told, messages, keys, its info, its members.
    public static let groupNamespaces: [Int16] = [-11, 11, 12, 13, 14]

    /// - Parameter namespaces: in any order; the usual ones by default.
    /// - Throws: `.malformedNamespaces` for none, or more than ``SessionLimits/namespaces``.
    public init(
        _ key: SessionAccountKey, namespaces: [Int16]? = nil, content: Content = .included
    ) throws(SessionError) {
        try self.init(key.account, .owner(key), namespaces, content)
    }

    /// A group, or another account of somebody else's.
    ///
    /// - Parameter namespaces: in any order; the usual ones by default.
    /// - Throws: `.malformedNamespaces` for none, or more than ``SessionLimits/namespaces``.
    public init(
        _ subaccount: Subaccount, namespaces: [Int16]? = nil, content: Content = .included
    ) throws(SessionError) {
        try self.init(subaccount.owner, .subaccount(subaccount), namespaces, content)
    }

    private init(
        _ account: AccountID, _ holder: Holder, _ namespaces: [Int16]?, _ content: Content
    ) throws(SessionError) {
        let usual = account.isPerson ? Self.userNamespaces : Self.groupNamespaces
        // A repeated one would be refused with the rest.
        let sorted = Set(namespaces ?? usual).sorted()
        guard (1...SessionLimits.namespaces).contains(sorted.count) else {
            throw SessionError(.malformedNamespaces)
        }
        (self.account, self.holder, self.namespaces, self.content) = (account, holder, sorted, content)
    }

    // MARK: signing

    /// The owner's key where the account is a Session ID, which does not tell it.
    var ownerKey: Ed25519PublicKey? {
        switch holder {
        case .owner(let key): account.isPerson ? key.pair.publicKey : nil
        case .subaccount(let subaccount): subaccount.ownerKey
        }
    }

    var subaccount: Subaccount? { if case .subaccount(let subaccount) = holder { subaccount } else { nil } }

    /// - Throws: `.malformedKey`, which nobody will meet.
    func signature(over text: Secret) throws(SessionError) -> Secret {
        let signature = text.reveal { text in
            switch holder {
            case .owner(let key): key.pair.signature(over: text)
            case .subaccount(let subaccount): subaccount.key.signature(over: text)
            }
        }
        guard let signature else { throw SessionError(.malformedKey) }
        return signature
    }
}
