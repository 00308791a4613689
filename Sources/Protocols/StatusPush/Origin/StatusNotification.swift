public import PushModel

/// A message that people are to be told of.
public struct StatusNotification: Sendable {
    public enum Occasion: Sendable {
        /// A message in a chat of two.
        case direct
        /// A message in a group chat.
        case group(chat: Secret)
        /// In a public or community chat, for somebody who was mentioned or whose message is replied to.
        case mention(chat: Secret)
        /// Somebody asks to join a community; for those who manage it.
        case joinRequest(community: Secret)
    }

    /// The id of the message.
    public var messageID: Secret
    public var occasion: Occasion
    /// What the phone can show without fetching: the message as the app's own encryption leaves it, or a
    /// text. It is sealed to the person and padded; what is longer than some 360 bytes is left out.
    public var content: Secret?
    /// Installations that the message is for; `nil`: all that are known.
    public var installations: [String]?

    public init(
        messageID: Secret, _ occasion: Occasion, content: Secret? = nil, installations: [String]? = nil
    ) {
        self.messageID = messageID
        self.occasion = occasion
        self.content = content
        self.installations = installations
    }
}

/// What became of a notification for one person.
public struct StatusDispatch: Sendable, Hashable {
    public enum Outcome: Sendable, Hashable {
        /// Servers took it for this many installations, and gave up on others.
        case taken(installations: Int, failed: Int)
        /// Nobody told a token that lets this sender in, or the person has no registration.
        case noToken
    }

    /// Of ``StatusOrigin/notify(_:to:now:)``.
    public let id: UInt64
    public let outcome: Outcome

    package init(id: UInt64, outcome: Outcome) {
        self.id = id
        self.outcome = outcome
    }
}

/// What the sending client wants done.
public struct StatusOriginWork: Sendable {
    /// To be published.
    public var messages: [WakuMessage] = []
    /// Content topics whose history is to be read from the store, the newest message at least. Each message
    /// goes to ``StatusOrigin/receive(_:now:)``, then the topic to ``StatusOrigin/readHistory(of:)``.
    public var histories: [String] = []
    /// Notifications that are settled.
    public var settled: [StatusDispatch] = []
}
