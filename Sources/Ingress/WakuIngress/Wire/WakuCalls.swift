import PushModel
package import StatusPush
import WireFormats

/// The calls of a node's REST interface, one by one: what a server, a client or a test needs of it.
package struct WakuCalls: Sendable {
    package let node: WakuNode
    private let web: any WebFetch
    private let limits: WakuLimits

    package init(node: WakuNode, web: any WebFetch, limits: WakuLimits = WakuLimits()) {
        self.node = node
        self.web = web
        self.limits = limits
    }

    /// Makes the node listen on our topic. Only after a poll that said 404: nwaku ignores a second
    /// subscription, but go-waku counts one more, and then returns each message twice.
    package func subscribe() async throws(NodeFault) {
        _ = try await call(.post, node.subscriptions, topics)
    }

    /// Makes it stop listening.
    package func unsubscribe() async throws(NodeFault) {
        _ = try await call(.delete, node.subscriptions, topics)
    }

    /// The messages that the node has received since the last call. It forgets what it returns, so the call
    /// is not repeated.
    ///
    /// - Parameter wants: which content topics, by their ids.
    /// - Throws: `.status(404, …)` when it does not listen.
    package func messages(wants: @Sendable (UInt32) -> Bool) async throws(NodeFault) -> NodeBatch {
        let body = try await call(.get, node.messages, limit: limits.answerBytes)
        return try NodeReader.messages(body, wants: wants)
    }

    /// A page of the store's messages, oldest first.
    ///
    /// - Parameters:
    ///   - range: of timestamps, Unix nanoseconds.
    ///   - cursor: of the page before; `nil`: the first one.
    ///
    /// No content topics are named, so that the store does not learn which ones we follow.
    package func history(
        _ range: ClosedRange<Int64>, cursor: String?, wants: @Sendable (UInt32) -> Bool
    ) async throws(NodeFault) -> NodePage {
        let url = node.history(range, pageSize: WakuLimits.pageMessages, cursor: cursor)
        let body = try await call(.get, url, limit: WakuLimits.pageBytes, mayRepeat: true)
        return try NodeReader.page(body, wants: wants)
    }

    /// Gives a message to the node, which passes it to its peers.
    package func publish(_ message: WakuMessage) async throws(NodeFault) {
        _ = try await call(.post, node.messages, Self.json(message))
    }

    /// The node's health; `.unknown` if it does not report it, or cannot be asked.
    package func health() async -> WakuHealth {
        do throws(NodeFault) {
            return NodeReader.health(
                try await call(.get, node.health, limit: WakuLimits.healthBytes, mayRepeat: true))
        } catch {
            return .unknown
        }
    }

    // MARK: Inside

    private var topics: Secret {
        var writer = JSONWriter()
        writer.beginArray()
        writer.string(node.pubsubTopic)
        writer.endArray()
        return Secret(writer.bytes)
    }

    /// A message as nodes read it. All members are written: a missing version would be 0.
    package static func json(_ message: WakuMessage) -> Secret {
        let size = 256 + message.contentTopic.utf8.count
        var writer = JSONWriter(
            reserving: size + Base64.encodedCount(message.payload.count)
                + Base64.encodedCount(message.meta.count))
        writer.beginObject()
        writer.key("payload")
        base64(message.payload, &writer)
        writer.member("contentTopic", message.contentTopic)
        writer.member("version", Int64(message.version))
        writer.member("timestamp", message.timestamp)
        if message.meta.count > 0 {
            writer.key("meta")
            base64(message.meta, &writer)
        }
        writer.member("ephemeral", message.isEphemeral)
        writer.endObject()
        return writer.takeSecret()
    }

    private static func base64(_ bytes: Secret, _ writer: inout JSONWriter) {
        let text = Secret(count: Base64.encodedCount(bytes.count)) { out in
            bytes.reveal { Base64.encode($0, into: out) }
        }
        text.reveal { writer.string(escaped: $0) }
    }

    private func call(
        _ method: WebRequest.Method, _ url: String, _ body: Secret? = nil,
        limit: Int = WakuLimits.wordBytes, mayRepeat: Bool = false
    ) async throws(NodeFault) -> Secret {
        var request = WebRequest(
            method, url: url, headers: [("accept", "application/json")], body: body, answerLimitBytes: limit,
            deadline: limits.callDeadline, publicAddressesOnly: false)
        if body != nil { request.headers.append(("content-type", "application/json")) }
        (request.mayRepeat, request.keepsConnection) = (mayRepeat, true)
        let answer: WebAnswer
        do throws(WebError) { answer = try await web.fetch(request) } catch { throw NodeFault(error) }
        guard 200..<300 ~= answer.status else {
            // A date would need a clock, and no node gives one.
            let seconds = answer.retryAfter.flatMap { UInt16($0) }.map { Duration.seconds(Int64($0)) }
            throw .status(answer.status, retryAfter: seconds)
        }
        return answer.body
    }
}
