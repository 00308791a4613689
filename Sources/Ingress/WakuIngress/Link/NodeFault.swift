import PushModel

/// How a call to the node failed.
package enum NodeFault: Error, Sendable, Hashable {
    /// Nothing answers at its address, or the connection ended before an answer.
    case unreachable
    /// The answer did not come in time.
    case overdue
    /// The answer has more bytes than are read.
    case tooLarge
    /// It is not a node's answer.
    case malformed
    /// A status that refuses the call.
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

    /// The node has no store (412), but may find one.
    var isNoStore: Bool { if case .status(412, _) = self { true } else { false } }

    /// Whether the same call may get another answer soon.
    var isPassing: Bool {
        switch self {
        case .unreachable, .overdue, .malformed: true
        case .tooLarge: false
        case .status(let status, _): status == 429 || status >= 500
        }
    }
}
