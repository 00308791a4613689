package import PushModel

/// An event between us and the node, for counting and logging: our own words, nothing that it said.
///
/// A note is made when something changes, not each time that the node is asked.
package enum WakuNote: String, Sendable, Hashable, CaseIterable {
    /// The node answers polls, and listens on our topic.
    case listening
    /// Nothing answers at its address, or not in time.
    case nodeAway
    /// It answers a poll or a subscription with a status that says no.
    case nodeRefuses
    /// What it answers cannot be read.
    case answerMalformed
    /// It answered with more than is read at once.
    case answerTooLarge
    /// It had forgotten our subscription.
    case subscriptionLost
    /// It reports that it has no peers; and that it has some again.
    case nodeAlone, nodeConnected
    /// The store returned the missed messages, or did not.
    case gapFetched, gapGivenUp
    /// The store does not answer; it is asked again.
    case storeAbsent

    /// Metric label, and the `note` of a log line.
    package var code: NoteCode {
        switch self {
        case .listening: NoteCode("listening")
        case .nodeAway: NoteCode("node-away")
        case .nodeRefuses: NoteCode("node-refuses")
        case .answerMalformed: NoteCode("answer-malformed")
        case .answerTooLarge: NoteCode("answer-too-large")
        case .subscriptionLost: NoteCode("subscription-lost")
        case .nodeAlone: NoteCode("node-alone")
        case .nodeConnected: NoteCode("node-connected")
        case .gapFetched: NoteCode("gap-fetched")
        case .gapGivenUp: NoteCode("gap-given-up")
        case .storeAbsent: NoteCode("store-absent")
        }
    }

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
