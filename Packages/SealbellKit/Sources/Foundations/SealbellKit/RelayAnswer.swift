/// What a Nostr relay did with an event.
public enum RelayAnswer: Sendable, Hashable {
    /// The relay has it.
    case accepted
    /// The relay refuses it, by the word in front of its text (NIP-01).
    case refused(NostrReason?)
    /// By its own document (NIP-11) it takes no such event.
    case unfit
    /// Somebody named an address that this app does not dial: without TLS, or of a private network.
    case forbidden
    /// It could not be dialled.
    case unreachable
    /// The proxy of Tor that the app was told to use is not there, or does not lead there. Nothing went
    /// another way.
    case torFailed
    /// It was dialled, and said nothing in time.
    case unanswered

    /// Whether the same event may be taken a little later.
    package var isOfAMoment: Bool {
        switch self {
        case .refused(.rateLimited), .refused(.error), .refused(nil), .unreachable, .torFailed, .unanswered:
            true
        case .accepted, .refused, .unfit, .forbidden: false
        }
    }
}
