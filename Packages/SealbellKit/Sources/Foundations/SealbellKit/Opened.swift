/// What to do about a push that opened.
public enum Opened<Content: Sendable>: Sendable {
    /// It is all here: show it.
    case show(Content)
    /// Ask the server, the swarm, the store or the group for the rest of it, and then show it.
    case fetch(Content)
    /// Take these off the screen.
    case remove(Content)
    /// State of the account, and nothing for people.
    case update(Content)
    /// Drop it silently.
    case ignore(Reason)

    /// Why nothing is to be done. For counting, not for people.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// It was stored before (``PushDevice/stored(_:)``).
        case repeated
        /// Its time is over.
        case expired
        /// Of a kind that this version does not know.
        case laterVersion
        /// The app or its user does not want it.
        case switchedOff
    }

    /// What was in it; `nil` where it is ignored.
    public var content: Content? {
        switch self {
        case .show(let content), .fetch(let content), .remove(let content), .update(let content): content
        case .ignore: nil
        }
    }
}
