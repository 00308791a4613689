public import PushModel

/// What a push says of a message (§8.1).
public struct SessionMessage: Sendable {
    /// Whose messages it belongs to: a user's, or a group's.
    public let account: AccountID
    /// The storage servers' name of the message: a text without a meaning of its own.
    public let hash: String
    /// `nil` where the sender did not tell: deployed servers cannot write negative ones.
    public let namespace: Int16?
    /// When it was sent; `nil` from servers of an older kind.
    public let sentAt: UnixTime?
    /// When storage servers let it go.
    public let expiresAt: UnixTime?
    /// The message itself, the bytes that are stored, still encrypted by its sender; `nil`: not in the push.
    public let data: Secret?
    /// Whether it was left out because it is too long.
    public let isTooLong: Bool

    /// Whether it is of a namespace whose messages people read: 0 of an account, 11 of a group (§4).
    public var isForPeople: Bool { namespace == 0 || namespace == 11 }
}

/// What an app does with a push.
package enum SessionAction: Sendable {
    /// The message is here: decrypt it and show it.
    case show(SessionMessage)
    /// What is here concerns the account's settings, lists or keys: take it in, and show nothing.
    case update(SessionMessage)
    /// The message is not in the push, too long or not asked for: fetch it from the account's swarm, and
    /// show a text of the app's own if that fails.
    case fetch(SessionMessage)
    case ignore(Reason)

    package enum Reason: Sendable, Hashable {
        /// It came before.
        case repeated
        /// It is for an account that is not on this phone, or no longer.
        case foreignAccount
        /// It is not in the push, and storage servers no longer have it.
        case expired
    }
}
