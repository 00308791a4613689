import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A handler in a listening socket's pipeline that pauses accepting when the system has no descriptor left.
///
/// The socket stays readable as long as a client waits in its queue, so accepting again at once would spin.
/// Waiting clients are served when there is room again.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = Any

    private let isStopping: @Sendable () -> Bool
    private let note: @Sendable () -> Void
    private var isPaused = false

    /// - Parameter isStopping: whether accepting has ended for good; then it is not taken up again.
    /// - Parameter note: called for each connection that the system had no room for.
    init(isStopping: @escaping @Sendable () -> Bool, note: @escaping @Sendable () -> Void) {
        self.isStopping = isStopping
        self.note = note
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let fault = error as? IOError, Self.passing.contains(fault.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        note()
        guard !isPaused, !isStopping() else { return }
        isPaused = true
        Self.setAccepting(false, context.channel)
        let bound = NIOLoopBound((self, context.channel), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: TimeAmount(IngressLimits.acceptPause)) {
            let (pause, channel) = bound.value
            pause.isPaused = false
            if !pause.isStopping() { Self.setAccepting(true, channel) }
        }
    }

    private static func setAccepting(_ accepts: Bool, _ channel: any Channel) {
        // A channel that has been closed meanwhile accepts no more anyway.
        try? channel.syncOptions?.setOption(.autoRead, value: accepts)
    }

    /// No descriptor in the process or the system, no buffers, no memory (accept(2)).
    private static let passing: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]
}
