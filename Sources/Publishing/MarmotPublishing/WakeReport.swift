public import MarmotPush
public import Secp256k1Keys
import WebSocket

/// What a relay did with a trigger.
public enum RelayAnswer: Sendable, Hashable {
    /// The relay has it.
    case accepted
    /// The relay refuses it, by the word in front of its text (NIP-01).
    case refused(NostrReason?)
    /// By its own document it takes no such event.
    case unfit
    /// Somebody named an address that this app does not dial: without TLS, or of a private network.
    case forbidden
    /// It could not be dialled.
    case unreachable
    /// The proxy of ``MarmotPublisher/Tor`` is not there, or does not lead there. Nothing went another way.
    case torFailed
    /// It was dialled, and said nothing in time.
    case unanswered

    init(_ publication: Publication, byTor: Bool) {
        switch publication {
        case .accepted: self = .accepted
        case .refused(let reason): self = .refused(reason)
        case .unfit: self = .unfit
        case .unanswered: self = .unanswered
        case .failed(.onionNeedsProxy), .failed(.forbiddenAddress): self = .forbidden
        case .failed(.proxyRefused): self = .torFailed
        case .failed(.unreachable) where byTor: self = .torFailed
        case .failed: self = .unreachable
        }
    }

    /// Whether the same event may be taken a little later.
    var isOfAMoment: Bool {
        switch self {
        case .refused(.rateLimited), .refused(.error), .refused(nil), .unreachable, .torFailed, .unanswered:
            true
        case .accepted, .refused, .unfit, .forbidden: false
        }
    }
}

/// The results of the triggers for one notification server.
public struct WakeReport: Sendable {
    /// The notification server.
    public let server: XOnlyKey
    /// Number of encrypted tokens of the group's phones that this server opens.
    public let tokens: Int
    /// Events that were made, and those that at least one relay has.
    public internal(set) var triggers = 0
    /// Events that at least one relay has, of ``triggers``.
    public internal(set) var accepted = 0
    /// The last answer of each relay that was asked, in the order in which they were tried; of several
    /// triggers the worst.
    public internal(set) var relays: [(url: String, answer: RelayAnswer)] = []
    /// Whether the server's list of kind 10050 is known.
    public internal(set) var hasList = false
    /// Whether there was a relay for the tokens of every format.
    var isWhole = true

    init(server: XOnlyKey, tokens: Int) {
        self.server = server
        self.tokens = tokens
    }

    /// Whether each of its triggers is at a relay of it.
    public var isReached: Bool { isWhole && triggers > 0 && accepted == triggers }

    /// What is wrong, for the person who runs the app's server; `nil` when nothing is.
    public var sentence: String? {
        if isReached { return nil }
        if relays.isEmpty { return hasList ? Self.nothingUsable : Self.notFound }
        return relays.allSatisfy { $0.answer == .torFailed } ? Self.noTor : Self.notTaken
    }

    static let nothingUsable =
        "The notification server's relay list (kind 10050) names no relay that can be used."
    static let notFound =
        "No relay of the notification server is known: its list (kind 10050) was not found."
    static let noTor = "The Tor proxy cannot be reached, or leads to no relay of the notification server."
    static let notTaken = "No relay of the notification server took the trigger."

    mutating func note(_ url: String, _ answer: RelayAnswer) {
        if let at = relays.firstIndex(where: { $0.url == url }) {
            relays[at].answer = answer
        } else {
            relays.append((url, answer))
        }
    }
}

/// Phones were not woken: no relay of their server is known, or none accepted the trigger. It is thrown so
/// that it is not overlooked; everything that could be published was published.
///
/// The message itself must not fail because of it: the others see it when they open the app.
public struct Unreached: Error, Sendable {
    /// Servers that were not reached, one at least.
    public let servers: [WakeReport]
    /// Those that were.
    public let reached: [WakeReport]
}
