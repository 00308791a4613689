import NIOCore
import NIOExtras
import NIOHTTP1
import NIOPosix
import NIOSSL
import PushModel

/// Opens sockets for a pool: TCP, through a proxy where one is configured, then TLS with ALPN `h2` and SNI.
struct HTTP2Dialer: Sendable {
    let endpoint: HTTP2Endpoint
    let options: HTTP2Options
    private let tls: NIOSSLContext
    /// `nil` when the host is an address: SNI names hosts only (RFC 6066 §3), and the certificate is then
    /// checked against the address.
    let serverName: String?

    /// - Throws: `.badCertificateFile` when TLS cannot be set up from the endpoint's trust.
    init(endpoint: HTTP2Endpoint, options: HTTP2Options) throws(HTTP2Error) {
        self.init(endpoint: endpoint, options: options, tls: try Self.context(endpoint.trust))
    }

    /// - Parameter tls: made once for all that trust the same.
    init(endpoint: HTTP2Endpoint, options: HTTP2Options, tls: NIOSSLContext) {
        self.endpoint = endpoint
        self.options = options
        self.tls = tls
        // What cannot be read as an address is a name.
        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)) != nil
        serverName = isAddress ? nil : endpoint.host
    }

    /// - Throws: `.badCertificateFile` when TLS cannot be set up from that trust.
    static func context(_ trust: NIOSSLTrustRoots) throws(HTTP2Error) -> NIOSSLContext {
        // The library's words are dropped: they may quote the file.
        guard let tls = try? NIOSSLContext(configuration: HTTP2Endpoint.tlsConfiguration(trust)) else {
            throw HTTP2Error(.badCertificateFile)
        }
        return tls
    }

    /// Connects; the connection itself tells the pool when it is ready. The future fails when TCP or the
    /// proxy does.
    func dial(_ connection: HTTP2Connection) -> EventLoopFuture<Void> {
        let deadline = TimeAmount.milliseconds(options.connectDeadline.wholeMilliseconds)
        let bootstrap = ClientBootstrap(group: connection.eventLoop).connectTimeout(deadline)
        guard let proxy = endpoint.proxy else {
            return
                bootstrap
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try self.secure(channel, connection) }
                }
                .connect(host: endpoint.host, port: endpoint.port)
                .map { _ in }
        }
        let established = connection.eventLoop.makePromise(of: Void.self)
        return
            bootstrap
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try self.addConnect(to: channel, proxy, deadline: deadline, established)
                }
            }
            .connect(host: proxy.host, port: proxy.port)
            .flatMapErrorThrowing { error in
                established.fail(error)
                throw error
            }
            .flatMap { channel in
                established.futureResult
                    .flatMap { self.removeConnect(from: channel) }
                    .flatMapThrowing { try self.secure(channel, connection) }
                    .flatMapErrorThrowing { error in
                        channel.close(promise: nil)
                        throw error
                    }
            }
    }

    private func secure(_ channel: any Channel, _ connection: HTTP2Connection) throws {
        let handler = try NIOSSLClientHandler(context: tls, serverHostname: serverName)
        try channel.pipeline.syncOperations.addHandlers(handler, connection)
    }

    private func addConnect(
        to channel: any Channel, _ proxy: HTTP2Endpoint.Proxy, deadline: TimeAmount,
        _ established: EventLoopPromise<Void>
    ) throws {
        let target = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        var headers = HTTPHeaders([("host", "\(target):\(endpoint.port)")])
        if let authorization = proxy.authorization {
            headers.add(name: "proxy-authorization", value: authorization)
        }
        let connect = NIOHTTP1ProxyConnectHandler(
            targetHost: target, targetPort: endpoint.port, headers: headers, deadline: .now() + deadline,
            promise: established)
        let sync = channel.pipeline.syncOperations
        try sync.addHandler(HTTPRequestEncoder(), name: Self.encoderName)
        try sync.addHandler(
            ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)),
            name: Self.decoderName)
        try sync.addHandler(connect)
    }

    private func removeConnect(from channel: any Channel) -> EventLoopFuture<Void> {
        // The CONNECT handler has gone by itself.
        channel.pipeline.removeHandler(name: Self.encoderName)
            .flatMap { channel.pipeline.removeHandler(name: Self.decoderName) }
    }

    private static let encoderName = "connect-encoder"
    private static let decoderName = "connect-decoder"
}
