/// What a body is. A closed list, so that the answer's head is made of fixed bytes.
package enum ContentType: Sendable, Hashable, CaseIterable {
    case json, text, html, metrics, octets, none
    /// As PHP's servers say them.
    case jsonText, xml

    var field: StaticString {
        switch self {
        case .json: "application/json"
        case .text: "text/plain; charset=utf-8"
        case .html: "text/html; charset=utf-8"
        case .metrics: "text/plain; version=0.0.4; charset=utf-8"
        case .octets: "application/octet-stream"
        case .none: ""
        case .jsonText: "application/json; charset=utf-8"
        case .xml: "application/xml; charset=utf-8"
        }
    }
}

/// One whole answer. `Content-Length`, `Date` and `Connection` are the server's.
package struct HTTPOutbound: Sendable {
    /// 200 to 599.
    package var status: Int
    package var type: ContentType
    package var body: [UInt8]
    /// Further fields. Names and values are our own text: visible ASCII, no line breaks.
    package var headers: [(name: StaticString, value: String)]
    /// Whether the connection ends with this answer.
    package var closes: Bool

    package init(
        _ status: Int, _ type: ContentType = .none, _ body: [UInt8] = [],
        headers: [(name: StaticString, value: String)] = [], closes: Bool = false
    ) {
        self.status = status
        self.type = type
        self.body = body
        self.headers = headers
        self.closes = closes
    }

    /// Plain text with a line break behind it.
    package static func text(_ status: Int, _ sentence: String) -> HTTPOutbound {
        HTTPOutbound(status, .text, Array(sentence.utf8) + [0x0A])
    }

    /// The same answer with `Retry-After`: whole seconds, rounded up, at least 1.
    package func retrying(after span: Duration) -> HTTPOutbound {
        var answer = self
        let seconds = max(1, (span.components.attoseconds > 0 ? 1 : 0) + span.components.seconds)
        answer.headers.append((name: "retry-after", value: String(seconds)))
        return answer
    }
}
