import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

@testable import Simulators

/// One HTTP/1.1 request, over TLS or not.
enum PlainClient {
    struct Answer: Sendable {
        var status: Int
        var headers: HTTPHeaders
        var body: [UInt8]
        var text: String { String(decoding: body, as: UTF8.self) }
        var tree: JSONTree? { JSONTree(body) }
    }

    struct NoAnswer: Error {}

    static func ask(
        port: Int, trusting authority: CertificateAuthority?, _ method: HTTPMethod, _ path: String,
        headers: [(String, String)] = [], body: [UInt8] = []
    ) async throws -> Answer {
        let promise = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: Answer.self)
        var tls: NIOSSLContext?
        if let authority {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .certificates(
                try NIOSSLCertificate.fromPEMBytes(Array(authority.certificatePEM.utf8)))
            tls = try NIOSSLContext(configuration: configuration)
        }
        let context = tls
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(
            .minutes(10)
        )
        .channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                if let context {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLClientHandler(context: context, serverHostname: "localhost"))
                }
                try channel.pipeline.syncOperations.addHTTPClientHandlers()
                try channel.pipeline.syncOperations.addHandler(Collector(promise))
            }
        }
        .connect(host: "127.0.0.1", port: port).get()
        var fields = HTTPHeaders([("host", "localhost"), ("content-length", String(body.count))])
        fields.add(contentsOf: headers)
        let head = HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: fields)
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
        // A future is not cancelled with its task: the connection ends it.
        let late = channel.eventLoop.scheduleTask(in: .minutes(10)) { channel.close(promise: nil) }
        defer { late.cancel() }
        let answer = try await promise.futureResult.get()
        try await channel.close().get()
        return answer
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        private let promise: EventLoopPromise<Answer>
        private var answer: Answer?
        private var isDone = false

        init(_ promise: EventLoopPromise<Answer>) { self.promise = promise }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                answer = Answer(status: Int(head.status.code), headers: head.headers, body: [])
            case .body(let part): answer?.body += Array(part.readableBytesView)
            case .end:
                isDone = true
                if let answer { promise.succeed(answer) }
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            if !isDone { promise.fail(NoAnswer()) }
        }
    }
}
