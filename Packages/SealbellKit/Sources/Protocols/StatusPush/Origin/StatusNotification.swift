public import PushModel

/// A message that people are to be told of.
public struct StatusNotification: Sendable {
    /// In which chat it was, which says how a phone names it.
    public enum Occasion: Sendable {
        /// A message in a chat of two.
        case direct
        /// A message in a group chat; its id, UTF-8.
        case group(chat: Secret)
        /// In a public or community chat (its id, UTF-8), for somebody who was mentioned or whose message is
        /// replied to.
        case mention(chat: Secret)
        /// Somebody asks to join a community (its id, UTF-8); for those who manage it.
        case joinRequest(community: Secret)
    }

    /// The id of the message: its bytes, 32 with deployed clients; not empty.
    public var messageID: Secret
    /// In which chat it was.
    public var occasion: Occasion
    /// What the phone can show without fetching: the message as the app's own encryption leaves it, or a
    /// text. It is sealed to the person and padded; what is longer than some 360 bytes is left out.
    public var content: Secret?
    /// Installations that the message is for; `nil`: all that are known.
    public var installations: [String]?

    /// A message that people are to be told of.
    ///
    /// - Parameter messageID: the message's id, not empty.
    /// - Parameter content: some 360 bytes at most; more is left out, and the phone fetches it.
    /// - Parameter installations: ids of installations, 36 characters each; `nil`: all.
    public init(
        messageID: Secret, _ occasion: Occasion, content: Secret? = nil, installations: [String]? = nil
    ) {
        self.messageID = messageID
        self.occasion = occasion
        self.content = content
        self.installations = installations
    }
}
