/// A request to a server of HTTPS: an OAuth token, a transfer challenge, a webhook. Small, bounded, without
/// redirects. Or one to a server on this machine, which may be without TLS and come often.
package struct WebRequest: Sendable {
    package enum Method: String, Sendable { case get = "GET", post = "POST", delete = "DELETE" }
    package var method: Method
    package var url: String
    package var headers: [(name: String, value: String)]
    package var body: Secret?
    /// More than this many bytes of answer is a fault.
    package var answerLimitBytes: Int
    package var deadline: Duration
    /// True where the URL came from a peer: only globally routable addresses are reached.
    package var publicAddressesOnly: Bool
    /// Whether it is sent once more when a connection that was kept turns out to have ended before any
    /// answer. Not for what changes something, nor for what empties a queue by reading it.
    package var mayRepeat = false
    /// Whether the connection is kept for further calls: for a server of the operator's that is asked often.
    /// It changes nothing for plain http, whose connections are always kept, nor for a peer's URL.
    package var keepsConnection = false

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
    case unreachable, tlsFailed, deadlineExceeded, answerTooLarge, forbiddenAddress, malformedURL
    case plainElsewhere, unknownHost

    package var sentence: String {
        switch self {
        case .unreachable: "The host did not answer."
        case .unknownHost: "There is no host of that name."
        case .tlsFailed: "The host answered, and TLS with it failed."
        case .deadlineExceeded: "The host took too long."
        case .answerTooLarge: "The host answered with more than was asked for."
        case .forbiddenAddress: "The host's address is not a public one."
        case .malformedURL: "The address is no https URL."
        case .plainElsewhere: "Plain http is for servers on this machine; use https."
        }
    }
}

package protocol WebFetch: Sendable {
    func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer
}
