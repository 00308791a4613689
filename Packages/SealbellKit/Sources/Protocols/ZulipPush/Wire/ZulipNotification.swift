/// The decrypted content of a notification (§7). Its texts are meant for a screen, so they are strings.
public struct ZulipNotification: Sendable, Hashable {
    /// What it is about (`type`).
    public enum Body: Sendable, Hashable {
        /// A message to show.
        case message(ZulipMessage)
        /// Messages to take off the screen, by their ids; at most ``ZulipLimits/removedMessages`` of them.
        case remove([Int64])
        /// A test that the user has asked for; Unix seconds.
        case test(time: Int64)
    }

    /// Absolute URL of the realm.
    public var realmURL: String
    /// The organization's name, where the server tells it.
    public var realmName: String?
    /// Whose account it is for.
    public var userID: Int64
    /// What it is about.
    public var body: Body

    /// A notification as an origin seals it.
    public init(realmURL: String, realmName: String?, userID: Int64, body: Body) {
        self.realmURL = realmURL
        self.realmName = realmName
        self.userID = userID
        self.body = body
    }
}

/// One message, as a notification tells it (§7).
public struct ZulipMessage: Sendable, Hashable {
    /// To whom it went.
    public enum Recipient: Sendable, Hashable {
        /// A topic of a channel; its name where the server tells it.
        case channel(id: Int64, name: String?, topic: String)
        /// Sorted; includes sender and recipient.
        case direct(userIDs: [Int64])
    }

    /// A group that was mentioned, where the user was not mentioned too.
    public struct Group: Sendable, Hashable {
        /// The group's number.
        public var id: Int64
        /// The group's name, for people.
        public var name: String

        /// A group that was mentioned.
        public init(id: Int64, name: String) {
            self.id = id
            self.name = name
        }
    }

    /// The message's number on its server.
    public var id: Int64
    /// Unix seconds.
    public var time: Int64
    /// Plain text; an origin cuts it at 200 characters (``cut(_:)``).
    public var content: String
    /// The sender's number.
    public var senderID: Int64
    /// The sender's full name.
    public var senderName: String
    /// Absolute URL.
    public var senderAvatarURL: String
    /// To whom it went.
    public var recipient: Recipient
    /// A group by which the user was mentioned, and not by name.
    public var mentionedGroup: Group?

    /// A message as an origin tells it.
    public init(
        id: Int64, time: Int64, content: String, senderID: Int64, senderName: String, senderAvatarURL: String,
        recipient: Recipient, mentionedGroup: Group? = nil
    ) {
        self.id = id
        self.time = time
        self.content = content
        self.senderID = senderID
        self.senderName = senderName
        self.senderAvatarURL = senderAvatarURL
        self.recipient = recipient
        self.mentionedGroup = mentionedGroup
    }

    /// Text of at most 200 characters (code points, as Python counts), with `…` where it was cut.
    public static func cut(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard
            let end = scalars.index(
                scalars.startIndex, offsetBy: ZulipLimits.contentCharacters, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return text }
        var short = String.UnicodeScalarView(scalars[..<end])
        short.append("…")
        return String(short)
    }
}
