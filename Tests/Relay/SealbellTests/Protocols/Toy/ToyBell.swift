import NIOCore
import NIOPosix
import Synchronization

@testable import RelayProgram

/// The server that a toy's ears listen to: it says the same line to all of them.
final class ToyBell: SandboxPeer {
    private let channel: any Channel
    private let ears: Ears

    init(group: any EventLoopGroup) async throws {
        let ears = Ears()
        channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { child in
                ears.all.withLock { $0.append(child) }
                return child.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.ears = ears
    }

    private final class Ears: Sendable {
        let all = Mutex<[any Channel]>([])
    }

    /// How many have ever come, and how many are there.
    var comings: Int { ears.all.withLock(\.count) }
    var listening: Int { ears.all.withLock { $0.count(where: \.isActive) } }

    func ring(_ line: String) {
        for ear in ears.all.withLock(\.self) {
            ear.writeAndFlush(ByteBuffer(string: line + "\n"), promise: nil)
        }
    }

    /// Ends the connections.
    func hangUp() { for ear in ears.all.withLock(\.self) { ear.close(promise: nil) } }

    // MARK: As a sandbox's peer

    var urls: [String: String] { ["sandbox-toy": "tcp://127.0.0.1:\(channel.localAddress?.port ?? 0)"] }

    func point(_ instance: inout InstanceConfiguration) {
        guard var settings = instance.settings as? ToySettings else { return }
        settings.bell = BindAddress("127.0.0.1:\(channel.localAddress?.port ?? 0)")
        instance.settings = settings
    }

    func stop() async {
        hangUp()
        channel.close(promise: nil)
    }
}

/// Connects, and hands on each line; the feed ends with the connection.
func toyConnection(
    to bell: BindAddress, on group: any EventLoopGroup, _ feed: AsyncStream<String>.Continuation
) async throws -> any Channel {
    try await ClientBootstrap(group: group).connectTimeout(.minutes(10))
        .channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(ToyLines(feed))
            }
        }
        .connect(host: bell.host, port: bell.port).get()
}

private final class ToyLines: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let feed: AsyncStream<String>.Continuation
    private var rest = ""

    init(_ feed: AsyncStream<String>.Continuation) { self.feed = feed }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        rest += String(buffer: unwrapInboundIn(data))
        while let end = rest.firstIndex(of: "\n") {
            feed.yield(String(rest[..<end]))
            rest.removeSubrange(...end)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { feed.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
