import Dialling
import NIOCore
import NIOExtras
import NIOHTTP1
import NIOSSL
import PushModel

/// Opens sockets for a pool: TCP, through a proxy where one is configured, then TLS with ALPN `h2` and SNI,
/// then the peer's first frame.
///
/// A name may have addresses that are dead in different ways: one refuses, one drops packets, one accepts the
/// connection and then sends nothing. So everything up to the first frame is part of one address's attempt
/// (``HTTP2Greeting``), and the pool's connection is put on the socket that won.
struct HTTP2Dialer: Sendable {
    let endpoint: HTTP2Endpoint
    let options: HTTP2Options
    private let tls: NIOSSLContext
    private let dialer: Dialer
    /// `nil` when the host is an address: SNI names hosts only (RFC 6066 §3), and the certificate is then
    /// checked against the address.
    private let serverName: String?

    /// - Throws: `.badCertificateFile` when TLS cannot be set up from the endpoint's trust.
    init(endpoint: HTTP2Endpoint, options: HTTP2Options) throws(HTTP2Error) {
        // The library's words are dropped: they may quote the file.
        guard let tls = try? NIOSSLContext(configuration: HTTP2Endpoint.tlsConfiguration(endpoint.trust))
        else { throw HTTP2Error(.badCertificateFile) }
        self.endpoint = endpoint
        self.options = options
        self.tls = tls
        dialer = Dialer(options.dialling)
        // What cannot be read as an address is a name.
        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)) != nil
        serverName = isAddress ? nil : endpoint.host
    }

    /// Connects; the connection itself tells the pool when it is ready, or why it never was.
    func dial(_ connection: HTTP2Connection) {
        let dial = dial(on: connection.eventLoop, addresses: nil) { result in
            switch result {
            case .success(let dialled): connection.adopt(dialled.ready, on: dialled.channel)
            case .failure(let fault): connection.fail(Self.code(of: fault))
            }
        }
        connection.begin(dial)
    }

    /// Goes the same way only to see whether it works.
    ///
    /// - Parameter addresses: instead of what the host's name, or the proxy's, means.
    /// - Returns: why it does not; `nil`: the peer has begun to speak HTTP/2.
    func knock(on loop: any EventLoop, addresses: [IPAddress]?) async -> HTTP2Error? {
        await withCheckedContinuation { continuation in
            dial(on: loop, addresses: addresses) { result in
                switch result {
                case .success(let dialled):
                    dialled.channel.close(promise: nil)
                    continuation.resume(returning: nil)
                case .failure(let fault): continuation.resume(returning: HTTP2Error(Self.code(of: fault)))
                }
            }.start()
        }
    }

    private func dial(
        on loop: any EventLoop, addresses: [IPAddress]?,
        done: @escaping @Sendable (Result<Dialled<HTTP2Greeted>, DialFault>) -> Void
    ) -> Dial<HTTP2Greeted> {
        let (host, port) = endpoint.proxy.map { ($0.host, $0.port) } ?? (endpoint.host, endpoint.port)
        return dialer.dial(
            host, port, on: loop, within: options.connectDeadline, addresses: addresses,
            prepare: { channel, attempt in
                guard let proxy = endpoint.proxy else { return try secure(channel, attempt) }
                try askProxy(proxy, on: channel, attempt)
            }, done: done)
    }

    static func code(of fault: DialFault) -> HTTP2Error.Code {
        switch fault {
        case .failed(let error): (error as? HTTP2Error)?.code ?? .unreachable
        case .silent: .noSettings
        case .unresolved, .unreachable, .late, .cancelled: .unreachable
        }
    }

    // MARK: One attempt

    private func secure(_ channel: any Channel, _ attempt: DialAttempt<HTTP2Greeted>) throws {
        let handler = try NIOSSLClientHandler(context: tls, serverHostname: serverName)
        let greeting = HTTP2Greeting(serverName: serverName, attempt: attempt)
        try channel.pipeline.syncOperations.addHandlers(handler, greeting)
    }

    private func askProxy(
        _ proxy: HTTP2Endpoint.Proxy, on channel: any Channel, _ attempt: DialAttempt<HTTP2Greeted>
    ) throws {
        let target = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        var headers = HTTPHeaders([("host", "\(target):\(endpoint.port)")])
        if let authorization = proxy.authorization {
            headers.add(name: "proxy-authorization", value: authorization)
        }
        let deadline = TimeAmount.milliseconds(options.connectDeadline.wholeMilliseconds)
        let established = channel.eventLoop.makePromise(of: Void.self)
        let connect = NIOHTTP1ProxyConnectHandler(
            targetHost: target, targetPort: endpoint.port, headers: headers, deadline: .now() + deadline,
            promise: established)
        let (encoder, decoder) = (
            HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes))
        )
        let sync = channel.pipeline.syncOperations
        try sync.addHandler(encoder)
        try sync.addHandler(decoder)
        try sync.addHandler(connect)
        established.futureResult.assumeIsolated()
            .flatMap {
                // The proxy's tunnel is open; the CONNECT handler has removed itself.
                attempt.hear()
                return sync.removeHandler(encoder).assumeIsolated()
                    .flatMap { sync.removeHandler(decoder) }.nonisolated()
            }
            .flatMapThrowing { try secure(channel, attempt) }
            .whenFailure { _ in
                // The library's words are dropped: they may quote names and addresses.
                attempt.fail(HTTP2Error(.unreachable))
            }
    }
}
