import NIOCore
package import NIOPosix
import Synchronization

/// A proxy that understands CONNECT and nothing else, on 127.0.0.1.
package final class ConnectProxy: Sendable {
    private let listener: any Channel
    private let lines: Lines

    fileprivate final class Lines: Sendable {
        let seen = Mutex<[String]>([])
    }

    package var port: Int { listener.localAddress?.port ?? 0 }
    /// Request heads as they came.
    package var requests: [String] { lines.seen.withLock { $0 } }

    /// - Parameter reply: the answer to every CONNECT; a tunnel is opened after a 200.
    package init(
        reply: String = "HTTP/1.1 200 Connection established\r\n\r\n",
        on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let lines = Lines()
        self.lines = lines
        // The socket is made by the loop's thread, whose network may be another.
        listener = try await group.next().flatSubmit {
            ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(ConnectHandler(lines, reply: reply))
                    }
                }
                .bind(host: "127.0.0.1", port: 0)
        }.get()
    }

    package func close() async throws { try await listener.close() }
}

/// Reads one CONNECT, connects, and passes bytes both ways.
private final class ConnectHandler: ChannelInboundHandler, @unchecked Sendable {
    // Safety: both ends of a tunnel live on one event loop.
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let lines: ConnectProxy.Lines
    private let reply: String
    private var head: [UInt8] = []
    private var other: (any Channel)?

    init(_ lines: ConnectProxy.Lines, reply: String) {
        self.lines = lines
        self.reply = reply
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        if let other { return other.writeAndFlush(buffer, promise: nil) }
        head.append(contentsOf: buffer.readableBytesView)
        guard head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return }
        let text = String(decoding: head, as: UTF8.self)
        lines.seen.withLock { $0.append(text) }
        let channel = context.channel
        let parts = text.split(separator: " ")
        guard reply.contains(" 200 "), parts.count > 1, parts[0] == "CONNECT",
            let port = parts[1].split(separator: ":").last.flatMap({ Int($0) })
        else {
            channel.writeAndFlush(ByteBuffer(string: reply), promise: nil)
            return
        }
        ClientBootstrap(group: context.eventLoop).connectTimeout(.minutes(10))
            .channelInitializer { $0.pipeline.addHandler(Backward(to: channel)) }
            .connect(host: "127.0.0.1", port: port)
            .assumeIsolated()
            .whenSuccess { tunnel in
                self.other = tunnel
                channel.writeAndFlush(ByteBuffer(string: self.reply), promise: nil)
            }
    }

    func channelInactive(context: ChannelHandlerContext) { other?.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// The far end of a proxy's tunnel: what comes there goes back to whoever asked for it.
final class Backward: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    private let channel: any Channel
    init(to channel: any Channel) { self.channel = channel }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        channel.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }
    func channelInactive(context: ChannelHandlerContext) { channel.close(promise: nil) }
}
