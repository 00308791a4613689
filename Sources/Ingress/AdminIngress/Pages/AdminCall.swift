package import HTTPIngress

/// One call of an operator beyond the pages: a path of the admin face and what answers it.
///
/// The face has authenticated the caller before `answer` sees anything. A call that changes something,
/// or that names what no URL may show, is a POST with a JSON body. It comes from no web page: a browser adds
/// `Origin` to what a page sends, and asks before it sends JSON to another site, which is never allowed here.
package struct AdminCall: Sendable {
    /// Largest body of a call: a device token of 4,096 characters, each of which may take two as JSON, or an
    /// id or host name, and names beside it.
    package static let bodyLimitBytes = 16 * 1024

    /// Begins with `/`.
    package let path: String
    /// Whether it is a POST with a JSON body; else a GET without one.
    package let takesBody: Bool
    package let answer: @Sendable (HTTPInbound) async -> HTTPOutbound

    package init(
        _ path: String, takesBody: Bool, answer: @escaping @Sendable (HTTPInbound) async -> HTTPOutbound
    ) {
        self.path = path
        self.takesBody = takesBody
        self.answer = answer
    }

    /// Why the call is refused before it is looked at; `nil` when it is not.
    func refusal(of inbound: HTTPInbound) -> HTTPOutbound? {
        guard inbound.method == (takesBody ? .post : .get) else {
            var answer = HTTPOutbound.text(405, "Only \(takesBody ? "POST" : "GET") is answered here.")
            answer.headers = [(name: "allow", value: takesBody ? "POST" : "GET")]
            return answer
        }
        guard takesBody else { return nil }
        guard inbound.header("origin") == nil else {
            return .text(403, "Calls of web pages are not answered here.")
        }
        guard inbound.header("content-type")?.lowercased() == "application/json" else {
            return .text(415, "Only application/json is understood here.")
        }
        return nil
    }
}
