import NIOCore
package import NIOPosix
import Synchronization

/// A SOCKS5 proxy on 127.0.0.1 that accepts every name and connects all of them to one port of this machine,
/// as Tor's proxy would connect to the relay of that name; it notes the requests.
package final class SOCKSProxy: Sendable {
    /// One CONNECT.
    package struct Asked: Sendable, Equatable {
        package var username: String
        package var password: String
        /// A name, or the digits of an address.
        package var host: String
        package var port: Int
    }

    fileprivate final class Notes: Sendable {
        let asked = Mutex<[Asked]>([])
    }

    private let listener: any Channel
    private let notes: Notes

    package var port: Int { listener.localAddress?.port ?? 0 }
    package var asked: [Asked] { notes.asked.withLock(\.self) }

    /// - Parameter target: the port to which it connects; `nil`: it refuses every target.
    package init(
        leadingTo target: Int?, on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let notes = Notes()
        self.notes = notes
        listener = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(SOCKSEnd(notes, target))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    package func close() async throws { try await listener.close() }
}

/// Speaks the proxy's side of RFC 1928 and RFC 1929, then passes bytes both ways.
private final class SOCKSEnd: ChannelInboundHandler, @unchecked Sendable {
    // Safety: both ends of a tunnel live on one event loop.
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State { case greeting, login, request, connecting, open }

    private let notes: SOCKSProxy.Notes
    private let target: Int?
    private var state = State.greeting
    private var input = ByteBuffer()
    private var asked = SOCKSProxy.Asked(username: "", password: "", host: "", port: 0)
    private var other: (any Channel)?

    init(_ notes: SOCKSProxy.Notes, _ target: Int?) {
        self.notes = notes
        self.target = target
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = unwrapInboundIn(data)
        if let other { return other.writeAndFlush(piece, promise: nil) }
        input.writeBuffer(&piece)
        while let answer = step(context.channel) { context.channel.writeAndFlush(answer, promise: nil) }
    }

    /// What to send next; `nil`: more must come first.
    private func step(_ channel: any Channel) -> ByteBuffer? {
        let before = input
        switch state {
        case .greeting:
            guard input.readInteger(as: UInt8.self) == 5, let methods = lengthPrefixed() else { break }
            let hasLogin = methods.contains(2)
            state = hasLogin ? .login : .request
            return ByteBuffer(bytes: [5, hasLogin ? 2 : 0])
        case .login:
            guard input.readInteger(as: UInt8.self) == 1, let name = lengthPrefixed(),
                let word = lengthPrefixed()
            else { break }
            asked.username = String(decoding: name, as: UTF8.self)
            asked.password = String(decoding: word, as: UTF8.self)
            state = .request
            return ByteBuffer(bytes: [1, 0])
        case .request:
            guard let head = input.readBytes(length: 4), let host = host(head[3]),
                let port = input.readInteger(as: UInt16.self)
            else { break }
            (asked.host, asked.port) = (host, Int(port))
            notes.asked.withLock { $0.append(asked) }
            state = .connecting
            guard let target else { return ByteBuffer(bytes: [5, 4, 0, 1, 0, 0, 0, 0, 0, 0]) }
            connect(channel, target)
            return nil
        case .connecting, .open: return nil
        }
        input = before
        return nil
    }

    private func lengthPrefixed() -> [UInt8]? {
        guard let length = input.readInteger(as: UInt8.self) else { return nil }
        return input.readBytes(length: Int(length))
    }

    private func host(_ kind: UInt8) -> String? {
        switch kind {
        case 1: input.readBytes(length: 4).map { $0.map(String.init).joined(separator: ".") }
        case 4: input.readBytes(length: 16).map { _ in "an IPv6 address" }
        default: lengthPrefixed().map { String(decoding: $0, as: UTF8.self) }
        }
    }

    private func connect(_ channel: any Channel, _ target: Int) {
        ClientBootstrap(group: channel.eventLoop).connectTimeout(.minutes(10))
            .channelInitializer { $0.pipeline.addHandler(Backward(to: channel)) }
            .connect(host: "127.0.0.1", port: target)
            .assumeIsolated()
            .whenSuccess { tunnel in
                self.other = tunnel
                self.state = .open
                channel.writeAndFlush(ByteBuffer(bytes: [5, 0, 0, 1, 127, 0, 0, 1, 0, 1]), promise: nil)
                if self.input.readableBytes > 0 { tunnel.writeAndFlush(self.input, promise: nil) }
            }
    }

    func channelInactive(context: ChannelHandlerContext) { other?.close(promise: nil) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
