/// A rare HTTPS request: an OAuth token, a transfer challenge, a webhook. Small, bounded, without
/// redirects.
package struct WebRequest: Sendable {
    package enum Method: String, Sendable { case get = "GET", post = "POST" }
    package var method: Method
    package var url: String
    package var headers: [(name: String, value: String)]
    package var body: Secret?
    /// More than this many bytes of answer is a fault.
    package var answerLimitBytes: Int
    package var deadline: Duration
    /// True where the URL came from a peer: only globally routable addresses are reached.
    package var publicAddressesOnly: Bool

    package init(
        _ method: Method, url: String, headers: [(name: String, value: String)] = [], body: Secret? = nil,
        answerLimitBytes: Int, deadline: Duration, publicAddressesOnly: Bool
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.answerLimitBytes = answerLimitBytes
        self.deadline = deadline
        self.publicAddressesOnly = publicAddressesOnly
    }
}

package struct WebAnswer: Sendable {
    package var status: Int
    /// `Retry-After`, as given.
    package var retryAfter: String?
    package var body: Secret

    package init(status: Int, retryAfter: String?, body: Secret) {
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
    }
}

package typealias WebError = CodedError<WebErrorCode>

package enum WebErrorCode: String, PushErrorCode {
    case unreachable, deadlineExceeded, answerTooLarge, forbiddenAddress, malformedURL

    package var blame: Blame { .peer }
    package var retry: RetryAdvice { self == .malformedURL || self == .forbiddenAddress ? .never : .later }
    package var sentence: String {
        switch self {
        case .unreachable: "The host did not answer."
        case .deadlineExceeded: "The host took too long."
        case .answerTooLarge: "The host answered with more than was asked for."
        case .forbiddenAddress: "The host's address is not a public one."
        case .malformedURL: "The address is no https URL."
        }
    }
}

package protocol WebFetch: Sendable {
    func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer
}
