import NIOCore
import NIOHTTP1
import PushModel
import WireFormats

/// A relay's information document (NIP-11), and the HTTP answers besides its WebSocket.
final class NostrRelayDocument: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let hub: NostrRelayHub
    private var head: HTTPRequestHead?

    init(_ hub: NostrRelayHub) { self.hub = hub }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end:
            guard let head else { return }
            self.head = nil
            answer(head, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let wants = head.headers[canonicalForm: "accept"].contains { $0.lowercased() == Self.type }
        let (status, type, body): (HTTPResponseStatus, String, [UInt8]) =
            switch (head.method, wants) {
            case (.GET, true): (.ok, Self.type, Self.json(hub))
            case (.GET, false): (.ok, "text/plain", Array("A Nostr relay: connect by WebSocket.\n".utf8))
            default: (.methodNotAllowed, "text/plain", Array("GET only.\n".utf8))
            }
        var headers = HTTPHeaders([
            ("content-type", type), ("content-length", String(body.count)),
            ("access-control-allow-origin", "*")
        ])
        if !head.isKeepAlive { headers.add(name: "connection", value: "close") }
        context.write(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))),
            promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        if !head.isKeepAlive { context.close(promise: nil) }
    }

    private static let type = "application/nostr+json"

    private static func json(_ hub: NostrRelayHub) -> [UInt8] {
        let configuration = hub.configuration
        let knobs = hub.knobs
        var out = JSONWriter(reserving: 512)
        out.beginObject()
        out.member("name", "sealbell sandbox relay")
        out.beginArray("supported_nips")
        for number in [1, 11, 42] { out.int(Int64(number)) }
        out.endArray()
        out.beginObject("limitation")
        out.member("max_message_length", Int64(configuration.messageBytes))
        out.member("max_content_length", Int64(configuration.contentBytes))
        out.member("max_subscriptions", Int64(configuration.subscriptions))
        out.member("max_limit", Int64(configuration.eventsOfRequest))
        out.member("max_subid_length", 64)
        out.member("created_at_upper_limit", configuration.ahead.components.seconds)
        out.member("auth_required", knobs.authentication != .none)
        out.member("restricted_writes", knobs.authenticatesPublishers)
        out.endObject()
        out.endObject()
        return out.bytes
    }
}
