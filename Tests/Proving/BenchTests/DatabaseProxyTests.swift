import NIOCore
import NIOPosix
import PushTesting
import Testing

@testable import Bench

@Suite("The network to a database that can be cut", .timeLimit(.minutes(30)))
struct DatabaseProxyTests {
    /// Sends back what it reads, and notes when a connection ends.
    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        let heard: Noted<String>
        let ended: AwaitedCount
        let sendsBack: Bool

        init(_ heard: Noted<String>, _ ended: AwaitedCount, sendsBack: Bool) {
            (self.heard, self.ended, self.sendsBack) = (heard, ended, sendsBack)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let buffer = unwrapInboundIn(data)
            heard.change { $0 += String(buffer: buffer) }
            if sendsBack { context.channel.writeAndFlush(buffer, promise: nil) }
        }
        func channelInactive(context: ChannelHandlerContext) { ended.add() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private struct Line {
        let server: any Channel
        let proxy: DatabaseProxy
        let client: any Channel
        let serverHeard = Noted("")
        let clientHeard = Noted("")
        let serverEnded = AwaitedCount()
        let clientEnded = AwaitedCount()

        init() async throws {
            let group = MultiThreadedEventLoopGroup.singleton
            let (serverHeard, serverEnded) = (serverHeard, serverEnded)
            server = try await ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            Echo(serverHeard, serverEnded, sendsBack: true))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            proxy = try await DatabaseProxy.start(to: server.localAddress?.port ?? 0, group: group)
            let (clientHeard, clientEnded) = (clientHeard, clientEnded)
            client = try await ClientBootstrap(group: group).connectTimeout(.minutes(10))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            Echo(clientHeard, clientEnded, sendsBack: false))
                    }
                }
                .connect(host: "127.0.0.1", port: proxy.port).get()
        }

        func say(_ text: String) async throws {
            try await client.writeAndFlush(ByteBuffer(string: text))
        }

        func end() async throws {
            // The client may be gone, which is what some of the tests are about.
            try? await client.close()
            await proxy.stop()
            try await server.close()
        }
    }

    @Test("What is said in a silence arrives behind it, both ways, and no connection ends")
    func silence() async throws {
        let line = try await Line()
        try await line.say("before ")
        await line.clientHeard.until { $0 == "before " }
        await line.proxy.fallSilent()
        try await line.say("within ")
        // There is no event for silence; what is let through takes a fraction of this.
        let wasHeard = await watchOutside(for: .milliseconds(200)) { line.serverHeard.value != "before " }
        #expect(!wasHeard && line.clientEnded.count == 0)
        await line.proxy.speakAgain()
        await line.clientHeard.until { $0 == "before within " }
        #expect(line.serverHeard.value == "before within ")
        try await line.end()
    }

    @Test("A cut ends both ends")
    func cut() async throws {
        let line = try await Line()
        try await line.say("x")
        await line.clientHeard.until { $0 == "x" }
        line.proxy.cut()
        await line.clientEnded.wait(for: 1)
        await line.serverEnded.wait(for: 1)
        try await line.end()
    }

    @Test("Either end's end is the other's")
    func ends() async throws {
        let line = try await Line()
        try await line.say("x")
        await line.clientHeard.until { $0 == "x" }
        try await line.client.close()
        await line.serverEnded.wait(for: 1)
        try await line.end()
    }
}
