package import PushModel

/// One request: shared fields, own fields, a credential, a body. Cheap to copy; the bytes are shared.
package struct HTTP2Request: Sendable {
    package let template: HTTP2HeaderTemplate
    package let head: HTTP2Head
    package let authorization: HTTP2Authorization?
    package let body: Secret

    package init(
        template: HTTP2HeaderTemplate, head: HTTP2Head, authorization: HTTP2Authorization?, body: Secret
    ) {
        self.template = template
        self.head = head
        self.authorization = authorization
        self.body = body
    }
}

/// Names a connection of a pool, so that who judges answers can ask for another one.
package struct HTTP2ConnectionTag: Sendable, Hashable {
    let number: Int
}

/// How a request ended.
package struct HTTP2Answer: Sendable {
    package enum Cause: Sendable, Hashable {
        /// The peer answered to the end.
        case answered
        /// The lease had run out before the bytes could be handed to the session.
        case leaseRanOut
        /// No answer within the request deadline.
        case deadlineExceeded
        /// REFUSED_STREAM: the peer did not look at it (RFC 9113 §8.7).
        case refused
        /// The peer reset the stream for another reason.
        case reset
        /// The connection ended, or ended before the request was written.
        case connectionLost
    }

    package var cause: Cause
    /// Whether the peer may have acted on the request.
    package var fate: Answer.Fate
    /// The HTTP status; 0 without an answer.
    package var status: Int
    /// The value of `retry-after`, as given, at most 64 bytes.
    package var retryAfter: [UInt8]
    /// At most ``HTTP2Options/answerLimitBytes``.
    package var body: [UInt8]
    /// When the request was handed to the session, by the wall clock; the hand-over if it never was.
    package var sentAt: UnixTime
    package var connection: HTTP2ConnectionTag
    /// Of a request that met its deadline: its stream is still open, and may be answered yet.
    package var late: HTTP2LateAnswer?

    package init(
        cause: Cause, fate: Answer.Fate, status: Int = 0, retryAfter: [UInt8] = [], body: [UInt8] = [],
        sentAt: UnixTime, connection: HTTP2ConnectionTag
    ) {
        self.cause = cause
        self.fate = fate
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
        self.sentAt = sentAt
        self.connection = connection
    }
}

extension HTTP2Answer {
    /// The outcome of a request that no answer ended: try again, no matter who is at fault.
    package var unanswered: Answer {
        let reason: Reason =
            switch cause {
            case .answered: .unknown
            case .leaseRanOut: .leaseRanOut
            case .deadlineExceeded: .deadlineExceeded
            case .refused: .notReached
            case .reset: .connectionLost
            case .connectionLost: fate == .unprocessed ? .notReached : .connectionLost
            }
        return Answer(.retry(after: nil), reason, sentAt: sentAt, fate: fate)
    }
}
