import CoreMetrics
import NIOCore
import PushModel

/// The handler of a connection for which there is no room: it sends one answer without reading, then closes.
final class FullConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let core: ListenerCore
    private let refusal: IngressRefusal
    private let isTLS: Bool

    init(core: ListenerCore, _ refusal: IngressRefusal, isTLS: Bool) {
        self.core = core
        self.refusal = refusal
        self.isTLS = isTLS
    }

    func channelActive(context: ChannelHandlerContext) {
        core.metrics.connectionsRefused.increment()
        // Over TLS an answer would cost a handshake, which is what there is no room for.
        guard !isTLS else { return context.close(promise: nil) }
        var buffer = context.channel.allocator.buffer(capacity: 256)
        var line = DateLine()
        buffer.writeAnswer(
            plainRefusal(refusal), AnswerFrame(closes: true), date: line.bytes(at: core.world.now()))
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { core.connectionClosed(nil) }
}
