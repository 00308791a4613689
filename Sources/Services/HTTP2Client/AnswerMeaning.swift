/// What an HTTP status alone says about an answer whose body is not in the service's own form, or whose words
/// we do not know. One row for each status that has a meaning; the others go by their class (RFC 9110 §15).
///
/// The numbers in brackets are sections of RFC 9110. Google's services map the codes of `google.rpc.Code` to
/// these statuses.
package enum AnswerMeaning: Sendable, Hashable {
    /// The service took the request.
    case accepted
    /// A passing fault: the same request may succeed later.
    case passes
    /// The same, and another connection is to carry it.
    case passesElsewhere
    /// It is about the sender, or about the connection. Without the service's own reason no push is to blame.
    case aboutSender
    /// It is about the request, which would get the same answer again.
    case aboutRequest

    package init(status: Int) {
        switch status {
        // Not a final answer (15.2), even if it is sent as one.
        case 100..<200: self = .passes
        case 200..<300: self = .accepted
        // Redirects (15.4) are never followed: a push goes where the configuration says.
        case 300..<400: self = .passes
        case 400..<500: self = Self.ofClient(status)
        // 500 INTERNAL, UNKNOWN, DATA_LOSS (15.6.1), 501 UNIMPLEMENTED (15.6.2), 502 (15.6.3), 503
        // UNAVAILABLE (15.6.4), 504 DEADLINE_EXCEEDED (15.6.5), and their class. What is no status at all
        // counts as 5xx (15).
        default: self = .passes
        }
    }

    private static func ofClient(_ status: Int) -> AnswerMeaning {
        switch status {
        // Bad Request: INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE (15.5.1).
        case 400: .aboutRequest
        // Unauthorized: UNAUTHENTICATED (15.5.2).
        case 401: .aboutSender
        // Payment Required, reserved (15.5.3); Google's billing faults are 403.
        case 402: .aboutSender
        // Forbidden: PERMISSION_DENIED (15.5.4).
        case 403: .aboutSender
        // Not Found: NOT_FOUND (15.5.5). Each service's own table says what it means there.
        case 404: .aboutRequest
        // Proxy Authentication Required (15.5.8): from a proxy between us and the service.
        case 407: .aboutSender
        // Request Timeout: the server closes, and the request may be repeated on another connection (15.5.9).
        case 408: .passesElsewhere
        // Conflict: ABORTED (15.5.10), "retry at a higher level" by google.rpc.Code.
        case 409: .passes
        // Misdirected Request: may be retried over a different connection (15.5.20).
        case 421: .passesElsewhere
        // Locked, Failed Dependency (RFC 4918 §11.3, §11.4): another request stands in the way.
        case 423, 424: .passes
        // Too Early (RFC 8470 §5.2): to be retried once the handshake is complete, which it is by then.
        case 425: .passes
        // Upgrade Required (15.5.22): about the connection's protocol.
        case 426: .aboutSender
        // Too Many Requests: RESOURCE_EXHAUSTED (RFC 6585 §4).
        case 429: .passes
        // Client Closed Request: CANCELLED by google.rpc.Code. We closed nothing: a proxy in front did.
        case 499: .passes
        // 405, 406, 410 to 417, 422, 428, 431, 451, and what is not assigned: as 400 (15).
        default: .aboutRequest
        }
    }
}
