package import PushModel

/// An event between us and the node, for counting and logging: our own words, nothing that it said.
///
/// A note is made when something changes, not each time that the node is asked.
package enum WakuNote: String, Sendable, Hashable, CaseIterable {
    /// The node answers polls, and listens on our topic.
    case listening
    /// Nothing answers at its address, or not in time.
    case nodeAway = "node-away"
    /// It answers a poll or a subscription with a status that says no.
    case nodeRefuses = "node-refuses"
    /// What it answers cannot be read.
    case answerMalformed = "answer-malformed"
    /// It answered with more than is read at once.
    case answerTooLarge = "answer-too-large"
    /// It had forgotten our subscription.
    case subscriptionLost = "subscription-lost"
    /// It reports that it has no peers; and that it has some again.
    case nodeAlone = "node-alone", nodeConnected = "node-connected"
    /// The store returned the missed messages, or did not.
    case gapFetched = "gap-fetched", gapGivenUp = "gap-given-up"
    /// The store does not answer; it is asked again.
    case storeAbsent = "store-absent"

    /// Metric label, and the `note` of a log line.
    package var code: NoteCode { NoteCode(word: self) }

    package var level: LogLevel {
        switch self {
        case .listening, .nodeConnected: .info
        case .gapFetched: .debug
        case .nodeAway, .nodeRefuses, .answerMalformed, .answerTooLarge, .subscriptionLost, .nodeAlone,
            .gapGivenUp, .storeAbsent:
            .warning
        }
    }
}
