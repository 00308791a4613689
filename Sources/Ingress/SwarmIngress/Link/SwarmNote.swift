package import PushModel

/// What happened on the link, for counting and logging: words of our own, nothing that a node said.
package enum SwarmNote: String, Sendable, Hashable, CaseIterable {
    case dialled, connected, lost, refused, late, farewell
    /// No node accepts it; it is out of the rotation until its row changes.
    case watchEnded = "watch-ended"
    /// A node has ended one, because the account is another swarm's by its list.
    case watchTakenBack = "watch-taken-back"
    case replyLate = "reply-late", replyMalformed = "reply-malformed", requestRefused = "request-refused"
    case struckOut = "struck-out", strange, storeSilent = "store-silent"
    /// No descriptor or no socket is left for a connection; the peer is dialled again later.
    case noRoom = "no-room"
    case daemonConnected = "daemon-connected", daemonLost = "daemon-lost", daemonSilent = "daemon-silent"
    case nodesMalformed = "nodes-malformed", nodesDoubted = "nodes-doubted", nodesTaken = "nodes-taken"

    /// Metric label, and the `note` of a log line.
    package var code: NoteCode { NoteCode(word: self) }

    /// Silent: an event that a node can cause as often as it likes is counted, never logged.
    package var level: LogLevel? {
        switch self {
        case .daemonConnected: .info
        case .daemonLost, .daemonSilent, .nodesMalformed, .nodesDoubted, .storeSilent, .noRoom:
            .warning
        case .nodesTaken: .debug
        case .dialled, .connected, .lost, .refused, .late, .farewell, .watchEnded, .watchTakenBack,
            .replyLate, .replyMalformed, .requestRefused, .struckOut, .strange:
            nil
        }
    }
}
