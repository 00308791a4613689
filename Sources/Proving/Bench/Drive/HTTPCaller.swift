#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOCore

/// One keep-alive connection that asks one thing at a time. Belongs to its event loop.
final class HTTPCaller: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Takes each answer; `nil` when the connection ended, whether or not something was asked.
    private let answered: (HTTPCaller, HTTPReply?) -> Void
    private var context: ChannelHandlerContext?
    private var inbox = ByteBuffer()
    private(set) var isBusy = false
    private(set) var hasEnded = false
    /// The peer, or its system, broke the connection off.
    private(set) var wasReset = false
    /// Whatever the owner wants to find again with the answer.
    var tag = -1

    init(_ answered: @escaping (HTTPCaller, HTTPReply?) -> Void) { self.answered = answered }

    /// The connection must be idle and must not have ended.
    func ask(_ request: ByteBuffer) {
        precondition(!isBusy && !hasEnded, "one request at a time")
        guard let context else { preconditionFailure("the connection is active before it is used") }
        isBusy = true
        context.writeAndFlush(wrapOutboundOut(request), promise: nil)
    }

    func close() { context?.close(promise: nil) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    /// It comes to a connection that stands, and may have ended by then without having told it.
    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        guard !hasEnded else { return }
        end()
        answered(self, nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if inbox.readableBytes == 0 { inbox = bytes } else { inbox.writeBuffer(&bytes) }
        do throws(BenchError) {
            guard let reply = try HTTPReplyParser.next(&inbox) else { return }
            if inbox.readableBytes == 0 { inbox = ByteBuffer() }
            guard isBusy else { return context.close(promise: nil) }
            isBusy = false
            if reply.closes { end() }
            answered(self, reply)
            if reply.closes { context.close(promise: nil) }
        } catch {
            context.close(promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        guard !hasEnded else { return }
        end()
        answered(self, nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let fault = error as? IOError { wasReset = fault.errnoCode == ECONNRESET }
        context.close(promise: nil)
    }

    private func end() {
        hasEnded = true
        isBusy = false
    }
}
