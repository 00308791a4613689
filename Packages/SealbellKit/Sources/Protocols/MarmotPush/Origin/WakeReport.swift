public import Secp256k1Keys
public import SealbellKit

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
    /// Whether the wake had more tokens than one takes, so that nothing was made.
    private var isRefused = false

    init(server: XOnlyKey, tokens: Int) {
        self.server = server
        self.tokens = tokens
    }

    /// Whether each of its triggers is at a relay of it.
    public var isReached: Bool { isWhole && triggers > 0 && accepted == triggers }

    /// What is wrong, for the person who runs the app's server; `nil` when nothing is.
    public var sentence: String? {
        if isReached { return nil }
        if isRefused { return Self.tooMany }
        if relays.isEmpty { return hasList ? Self.nothingUsable : Self.notFound }
        return relays.allSatisfy { $0.answer == .torFailed } ? Self.noTor : Self.notTaken
    }

    /// The same for logs; `nil` when nothing is.
    var fault: String? {
        switch sentence {
        case nil: nil
        case Self.nothingUsable: "noRelay"
        case Self.notFound: "noList"
        case Self.noTor: "noTor"
        default: "notTaken"
        }
    }

    package static let tooMany = "These are more tokens than one wake takes: wake each group by itself."
    package static let nothingUsable =
        "The notification server's relay list (kind 10050) names no relay that can be used."
    package static let notFound =
        "No relay of the notification server is known: its list (kind 10050) was not found."
    package static let noTor =
        "The Tor proxy cannot be reached, or leads to no relay of the notification server."
    package static let notTaken = "No relay of the notification server took the trigger."

    /// What became of tokens that ``MarmotOrigin/notify(_:)`` has refused, by server.
    package static func refused(_ tokens: [GossipToken]) -> [WakeReport] {
        Dictionary(grouping: tokens, by: \.server).map { server, tokens in
            var report = WakeReport(server: server, tokens: tokens.count)
            report.isRefused = true
            return report
        }
    }

    mutating func note(_ url: String, _ answer: RelayAnswer) {
        if let at = relays.firstIndex(where: { $0.url == url }) {
            relays[at].answer = answer
        } else {
            relays.append((url, answer))
        }
    }
}
