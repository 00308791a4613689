import PushModel

/// How a call to the node failed.
package enum NodeFault: Error, Sendable, Hashable {
    /// Nobody answers at its address, or the connection ended before an answer.
    case unreachable
    /// The answer did not come in time.
    case overdue
    /// The answer has more bytes than are read.
    case tooLarge
    /// It is no answer of a node.
    case malformed
    /// A status that says no.
    case status(Int, retryAfter: Duration?)

    /// A fault of the fetch; its text and the node's are dropped here.
    init(_ error: WebError) {
        switch error.code {
        case .deadlineExceeded: self = .overdue
        case .answerTooLarge: self = .tooLarge
        case .unreachable, .unknownHost, .tlsFailed, .forbiddenAddress, .malformedURL, .plainElsewhere:
            self = .unreachable
        }
    }

    var retryAfter: Duration? {
        if case .status(_, let span) = self { span } else { nil }
    }

    /// The node knows no store (412), and may find one.
    var isNoStore: Bool { if case .status(412, _) = self { true } else { false } }

    /// Whether the same call may be answered otherwise in a moment.
    var isPassing: Bool {
        switch self {
        case .unreachable, .overdue, .malformed: true
        case .tooLarge: false
        case .status(let status, _): status == 429 || status >= 500
        }
    }
}
