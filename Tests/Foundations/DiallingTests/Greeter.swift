import Dialling
import NIOCore
import NIOPosix
import PushTesting

/// A server at 127.0.0.1 that says a word to whoever connects.
final class Greeter: Sendable {
    private let listener: any Channel
    let port: Int

    init(on group: MultiThreadedEventLoopGroup = .singleton) async throws {
        // The socket is made by the loop's thread, whose network may be another.
        listener = try await group.next().flatSubmit {
            ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Greeting())
                    }
                }
                .bind(host: "127.0.0.1", port: 0)
        }.get()
        port = listener.localAddress?.port ?? 0
    }

    func close() async throws { try await listener.close() }

    private final class Greeting: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        func channelActive(context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "good")), promise: nil)
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

/// The first words that came on one attempt's channel are what it has.
final class FirstWords: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let attempt: DialAttempt<String>

    init(_ attempt: DialAttempt<String>) { self.attempt = attempt }

    static func prepare(_ channel: any Channel, _ attempt: DialAttempt<String>) throws {
        try channel.pipeline.syncOperations.addHandler(FirstWords(attempt))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        attempt.succeed(String(buffer: unwrapInboundIn(data)))
    }

    func channelInactive(context: ChannelHandlerContext) { attempt.fail(ChannelError.eof) }
}
