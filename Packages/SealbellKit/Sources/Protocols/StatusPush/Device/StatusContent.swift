public import PushModel
public import Secp256k1Keys

/// What a push of Status says.
public struct StatusContent: Sendable {
    /// The installation, and so the account, that it is for: a UUID.
    public let installationID: String
    /// The id of the chat, as the app gave it in ``StatusDevice/chats``; `nil`: it gave none with this hash.
    public let chat: Secret?
    /// The id of the message, 1 to 255 bytes; `nil`: not told, fetch what is new.
    public let id: Secret?
    /// What the sender put in, with ``id`` 397 bytes at most; `nil`: not in the push.
    public let content: Secret?
    /// Who sealed ``content``; `nil` together with it. Whether that is a contact, the app knows.
    public let author: PublicPoint?
}
