package import PushModel
package import SessionPush

/// What happened on the link, for counting and logging: words of our own, nothing that a node said.
package enum SwarmNote: Sendable, Hashable {
    case dialled, connected, lost, refused, late, farewell
    /// The number of watches that were accepted.
    case shown(Int)
    case watchRefused(MonitorRefusal)
    /// No node accepts it; it is out of the rotation until its row changes.
    case watchEnded
    /// A node has ended one, because the account is another swarm's by its list.
    case watchTakenBack
    case replyLate, replyMalformed, requestRefused, struckOut
    case strange, storeSilent
    /// No descriptor or no socket is left for a connection; the peer is dialled again later.
    case noRoom
    case daemonConnected, daemonLost, daemonSilent, nodesMalformed, nodesDoubted, nodesTaken

    /// Metric label, and the `note` of a log line.
    package var code: NoteCode {
        switch self {
        case .dialled: NoteCode("dialled")
        case .connected: NoteCode("connected")
        case .lost: NoteCode("lost")
        case .refused: NoteCode("refused")
        case .late: NoteCode("late")
        case .farewell: NoteCode("farewell")
        case .shown: NoteCode("shown")
        case .watchRefused: NoteCode("watch-refused")
        case .watchEnded: NoteCode("watch-ended")
        case .watchTakenBack: NoteCode("watch-taken-back")
        case .replyLate: NoteCode("reply-late")
        case .replyMalformed: NoteCode("reply-malformed")
        case .requestRefused: NoteCode("request-refused")
        case .struckOut: NoteCode("struck-out")
        case .strange: NoteCode("strange")
        case .storeSilent: NoteCode("store-silent")
        case .noRoom: NoteCode("no-room")
        case .daemonConnected: NoteCode("daemon-connected")
        case .daemonLost: NoteCode("daemon-lost")
        case .daemonSilent: NoteCode("daemon-silent")
        case .nodesMalformed: NoteCode("nodes-malformed")
        case .nodesDoubted: NoteCode("nodes-doubted")
        case .nodesTaken: NoteCode("nodes-taken")
        }
    }

    /// Silent: an event that a node can cause as often as it likes is counted, never logged.
    package var level: LogLevel? {
        switch self {
        case .daemonConnected: .info
        case .daemonLost, .daemonSilent, .nodesMalformed, .nodesDoubted, .storeSilent, .noRoom:
            .warning
        case .nodesTaken: .debug
        case .dialled, .connected, .lost, .refused, .late, .farewell, .shown, .watchRefused, .watchEnded,
            .watchTakenBack, .replyLate, .replyMalformed, .requestRefused, .struckOut, .strange:
            nil
        }
    }
}
