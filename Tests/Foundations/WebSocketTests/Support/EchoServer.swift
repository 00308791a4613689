import EventLoops
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import PushModel
import Simulators
import Synchronization

@testable import WebSocket

/// The server's side of the library, saying back what it hears.
final class EchoServer: Sendable {
    private let listener: any Channel
    let port: Int

    init(
        _ limits: WebSocketLimits = .patient, authority: CertificateAuthority? = nil,
        host: String = "127.0.0.1", port: Int = 0, on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let tls = try authority.map { authority in
            let issued = try authority.issue()
            return try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: [
                        .certificate(
                            try NIOSSLCertificate(bytes: Array(issued.certificatePEM.utf8), format: .pem))
                    ],
                    privateKey: .privateKey(
                        try NIOSSLPrivateKey(bytes: Array(issued.privateKeyPEM.utf8), format: .pem))))
        }
        // The socket is made by the loop's thread, whose network may be another.
        listener = try await group.next().flatSubmit {
            ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let tls {
                            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                        }
                        try WebSocketServer.configure(
                            channel, limits: limits, world: .live, plain: { Plain() },
                            accepts: { $0.uri != "/no" }, user: { _, _ in Echo() })
                    }
                }
                .bind(host: host, port: port)
        }.get()
        self.port = listener.localAddress?.port ?? 0
    }

    func close() async throws { try await listener.close() }

    private final class Echo: WebSocketUser {
        private var link: WebSocketLink?
        func opened(_ link: WebSocketLink) { self.link = link }
        func received(_ message: WebSocketMessage) { link?.send(message) }
        func ponged(_ payload: ByteBuffer) {}
        func becameWritable() {}
        func ended(_ end: WebSocketEnd) { link = nil }
    }

    private final class Plain: ChannelInboundHandler, RemovableChannelHandler, Sendable {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let head = HTTPResponseHead(
                version: .http1_1, status: .ok, headers: ["content-length": "5"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "plain")))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
