/// The decrypted content of a notification (§7). Its texts are meant for a screen, so they are strings.
public struct ZulipNotification: Sendable, Hashable {
    public enum Body: Sendable, Hashable {
        case message(ZulipMessage)
        /// Messages to take off the screen.
        case remove([Int64])
        /// Unix seconds.
        case test(time: Int64)
    }

    /// Absolute URL of the realm.
    public var realmURL: String
    public var realmName: String?
    public var userID: Int64
    public var body: Body

    public init(realmURL: String, realmName: String?, userID: Int64, body: Body) {
        self.realmURL = realmURL
        self.realmName = realmName
        self.userID = userID
        self.body = body
    }
}

/// One message, as a notification tells it (§7).
public struct ZulipMessage: Sendable, Hashable {
    public enum Recipient: Sendable, Hashable {
        case channel(id: Int64, name: String?, topic: String)
        /// Sorted; includes sender and recipient.
        case direct(userIDs: [Int64])
    }

    /// A group that was mentioned, where the user was not mentioned too.
    public struct Group: Sendable, Hashable {
        public var id: Int64
        public var name: String

        public init(id: Int64, name: String) {
            self.id = id
            self.name = name
        }
    }

    public var id: Int64
    /// Unix seconds.
    public var time: Int64
    /// Plain text.
    public var content: String
    public var senderID: Int64
    public var senderName: String
    /// Absolute URL.
    public var senderAvatarURL: String
    public var recipient: Recipient
    public var mentionedGroup: Group?

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
