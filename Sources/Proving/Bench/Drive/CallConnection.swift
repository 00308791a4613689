package import NIOCore
import NIOPosix
import PushModel

/// One keep-alive connection for those who wait for each answer. For single calls, not for load.
package final class CallConnection: @unchecked Sendable {
    // Safety: `caller` and `waiting` are touched on the channel's event loop alone.

    private let channel: any Channel
    private let caller: HTTPCaller
    private var waiting: EventLoopPromise<HTTPReply?>?
    /// Port of our end: what the relay sees as its peer's.
    package let localPort: Int
    /// The relay's.
    let remotePort: Int

    private init(channel: any Channel, caller: HTTPCaller) {
        self.channel = channel
        self.caller = caller
        localPort = channel.localAddress?.port ?? 0
        remotePort = channel.remoteAddress?.port ?? 0
    }

    /// - Parameter place: the address to come from; `nil`: whichever the system takes.
    /// - Throws: `.unreachable`.
    package static func connect(
        host: String, port: Int, from place: String? = nil, eventLoop: any EventLoop
    ) async throws(BenchError) -> CallConnection {
        let box = Box()
        do {
            var bootstrap = ClientBootstrap(group: eventLoop)
            if let place { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: place, port: 0)) }
            return
                try await bootstrap
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .connectTimeout(.seconds(2))
                .connect(host: host, port: port)
                .flatMapThrowing { channel in
                    // On the one socket that won: a name's other addresses have no part in it.
                    let caller = HTTPCaller { box.connection?.answered($1) }
                    try channel.pipeline.syncOperations.addHandler(caller)
                    let connection = CallConnection(channel: channel, caller: caller)
                    box.connection = connection
                    return connection
                }
                .get()
        } catch {
            throw BenchError(.unreachable)
        }
    }

    /// Asks and waits; one call at a time.
    ///
    /// - Returns: `nil` when the connection ended, or after `patience`; it is of no use then.
    package func ask(_ request: ByteBuffer, within patience: Duration) async -> HTTPReply? {
        // The future does not fail; it ends with `nil`.
        (try? await begin(request, within: patience).get()) ?? nil
    }

    /// Begins to ask, and does not wait.
    func begin(_ request: ByteBuffer, within patience: Duration) -> EventLoopFuture<HTTPReply?> {
        let loop = channel.eventLoop
        return loop.flatSubmit {
            guard !self.caller.hasEnded, self.waiting == nil else { return loop.makeSucceededFuture(nil) }
            let promise = loop.makePromise(of: HTTPReply?.self)
            self.waiting = promise
            self.caller.ask(request)
            let late = loop.scheduleTask(in: .nanoseconds(Int64(patience.inSeconds * 1e9))) {
                if self.waiting != nil { self.caller.close() }
            }
            promise.futureResult.whenComplete { _ in late.cancel() }
            return promise.futureResult
        }
    }

    /// How the connection stands: whether it can be asked, and whether it was broken off.
    func standing() async -> (hasEnded: Bool, wasReset: Bool) {
        let future = channel.eventLoop.submit { (self.caller.hasEnded, self.caller.wasReset) }
        // The event loop outlives every connection.
        return (try? await future.get()) ?? (true, false)
    }

    package func close() { channel.close(promise: nil) }

    private func answered(_ reply: HTTPReply?) {
        let waiting = waiting
        self.waiting = nil
        waiting?.succeed(reply)
    }

    /// Ties the knot between the handler and its owner while the channel is set up.
    private final class Box: @unchecked Sendable {
        // Safety: written and read on the channel's event loop alone.
        weak var connection: CallConnection?
    }
}
