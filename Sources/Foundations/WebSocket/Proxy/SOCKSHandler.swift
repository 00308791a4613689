import NIOCore
import NIOTLS

/// Speaks SOCKS at the bottom of a pipeline, then calls `established` to put what follows above itself, and
/// leaves. `heard` is called when the proxy has said anything at all.
final class SOCKSHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var handshake: SOCKSHandshake
    private let heard: () -> Void
    private let established: (ChannelHandlerContext) throws -> Void
    private let failed: () -> Void
    /// At most what one reading holds beside an answer of 262 bytes: anything longer is refused or passed on.
    private var input = ByteBuffer()
    private var isHeard = false
    private var isOver = false

    init(
        _ handshake: SOCKSHandshake, heard: @escaping () -> Void,
        established: @escaping (ChannelHandlerContext) throws -> Void, failed: @escaping () -> Void
    ) {
        self.handshake = handshake
        self.heard = heard
        self.established = established
        self.failed = failed
    }

    func handlerAdded(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(handshake.greeting), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = unwrapInboundIn(data)
        if isOver { return context.fireChannelRead(data) }
        if !isHeard {
            isHeard = true
            heard()
        }
        input.writeBuffer(&piece)
        while true {
            switch handshake.take(&input) {
            case .wait: return
            case .send(let bytes): context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
            case .refused: return fail()
            case .established: return finish(context)
            }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isOver { fail() }
        context.fireChannelInactive()
    }

    private func fail() {
        isOver = true
        failed()
    }

    private func finish(_ context: ChannelHandlerContext) {
        isOver = true
        do {
            try established(context)
        } catch {
            // Setting TLS up failed; the library's words are dropped.
            return failed()
        }
        // The target may have spoken already.
        if input.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(input)) }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }
}
