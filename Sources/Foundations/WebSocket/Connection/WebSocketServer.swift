package import NIOCore
package import NIOHTTP1
import NIOWebSocket
package import PushModel

/// The server's side, for simulators and tests: HTTP/1.1 whose requests may ask for a WebSocket.
package enum WebSocketServer {
    /// Sets a channel up; to be called on its event loop.
    ///
    /// - Parameters:
    ///   - plain: answers every other request; it goes when a WebSocket opens.
    ///   - accepts: whether a head that asks for a WebSocket gets one; a refusal goes to `plain`.
    ///   - user: who speaks on it, given the head that asked.
    package static func configure(
        _ channel: any Channel, limits: WebSocketLimits, world: World,
        plain: @escaping @Sendable () -> any ChannelInboundHandler & RemovableChannelHandler,
        accepts: @escaping @Sendable (HTTPRequestHead) -> Bool = { _ in true },
        user: @escaping @Sendable (any Channel, HTTPRequestHead) -> any WebSocketUser
    ) throws {
        let name = "plain-http"
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: limits.messageBytes, automaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                channel.eventLoop.makeSucceededFuture(accepts(head) ? HTTPHeaders() : nil)
            },
            upgradePipelineHandler: { channel, head in
                channel.eventLoop.makeCompletedFuture {
                    let link = WebSocketLink(
                        .server, user: user(channel, head), limits: limits, world: world,
                        eventLoop: channel.eventLoop)
                    try channel.pipeline.syncOperations.addHandler(link)
                }
            })
        let sync = channel.pipeline.syncOperations
        try sync.configureHTTPServerPipeline(
            withServerUpgrade: (
                upgraders: [upgrader],
                completionHandler: { context in
                    // It may have gone with the channel.
                    context.pipeline.removeHandler(name: name, promise: nil)
                }
            ))
        try sync.addHandler(plain(), name: name)
    }
}
