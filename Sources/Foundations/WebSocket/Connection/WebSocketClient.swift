package import EventLoops
import NIOCore
import NIOPosix
import NIOSSL
package import PushModel

/// Opens WebSockets as a client: TCP or a SOCKS5 tunnel, TLS, upgrade.
///
/// Connections live on the event loop of `executor`.
package struct WebSocketClient: Sendable {
    package let executor: LoopExecutor
    package let limits: WebSocketLimits
    private let world: World
    private let tls: NIOSSLContext

    /// - Parameter certificates: PEM text of the CAs to trust; `nil`: the system's.
    /// - Throws: `.badCertificateFile`.
    package init(
        executor: LoopExecutor, limits: WebSocketLimits = WebSocketLimits(), certificates: [UInt8]? = nil,
        world: World = .live
    ) throws(WebSocketError) {
        self.executor = executor
        self.limits = limits
        self.world = world
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        // A peer that does not say goodbye is not waited for any longer.
        configuration.shutdownTimeout = .seconds(1)
        // The library's words are dropped: they may quote the file.
        let refused = WebSocketError(.badCertificateFile)
        if let certificates {
            // As above.
            guard let parsed = try? NIOSSLCertificate.fromPEMBytes(certificates), !parsed.isEmpty else {
                throw refused
            }
            configuration.trustRoots = .certificates(parsed)
        }
        // As above.
        guard let tls = try? NIOSSLContext(configuration: configuration) else { throw refused }
        self.tls = tls
    }

    /// Connects, within ``WebSocketLimits/connectDeadline``.
    ///
    /// With a proxy, the target's name goes to the proxy and to no resolver of this machine. An onion address
    /// without one is refused before anything is asked.
    /// - Throws: `.onionNeedsProxy`, `.unreachable`, `.proxyRefused`, `.tlsFailed`, `.upgradeRefused`,
    ///   `.badUpgrade`, `.connectDeadline`, `.cancelled`.
    package func connect(
        _ address: WebSocketAddress, proxy: SOCKS5Proxy? = nil
    ) async throws(WebSocketError) -> WebSocketConnection {
        guard proxy != nil || !address.isOnion else { throw WebSocketError(.onionNeedsProxy) }
        let dial = WebSocketDial(
            address, proxy: proxy, tls: address.isSecure ? tls : nil, limits: limits, world: world,
            executor: executor)
        let loop = executor.loop
        let outcome: Result<WebSocketConnection, WebSocketError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.execute { dial.start(continuation) }
            }
        } onCancel: {
            loop.execute { dial.finish(.failure(WebSocketError(.cancelled))) }
        }
        return try outcome.get()
    }
}

/// One attempt to connect; on its event loop.
private final class WebSocketDial: @unchecked Sendable {
    // Safety: the constants are Sendable; every other field is touched on the event loop alone.
    private typealias Outcome = Result<WebSocketConnection, WebSocketError>

    private let address: WebSocketAddress
    private let proxy: SOCKS5Proxy?
    private let tls: NIOSSLContext?
    private let limits: WebSocketLimits
    private let world: World
    private let executor: LoopExecutor
    private var channel: (any Channel)?
    private var continuation: CheckedContinuation<Result<WebSocketConnection, WebSocketError>, Never>?
    private var isOver = false
    private var deadline: Scheduled<Void>?

    init(
        _ address: WebSocketAddress, proxy: SOCKS5Proxy?, tls: NIOSSLContext?, limits: WebSocketLimits,
        world: World, executor: LoopExecutor
    ) {
        self.address = address
        self.proxy = proxy
        self.tls = tls
        self.limits = limits
        self.world = world
        self.executor = executor
    }

    /// SNI names hosts only (RFC 6066 §3).
    private var serverName: String? { address.literal == nil ? address.host : nil }

    func start(_ continuation: CheckedContinuation<Result<WebSocketConnection, WebSocketError>, Never>) {
        guard !isOver else { return continuation.resume(returning: .failure(WebSocketError(.cancelled))) }
        self.continuation = continuation
        let span = proxy == nil ? limits.connectDeadline : limits.proxiedConnectDeadline
        let amount = TimeAmount.milliseconds(span.wholeMilliseconds)
        deadline = executor.loop.scheduleTask(in: amount) {
            self.finish(.failure(WebSocketError(.connectDeadline)))
        }
        // Handlers come onto the one socket that won: the bootstrap may try several addresses at once.
        ClientBootstrap(group: executor.loop)
            .connectTimeout(amount)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: proxy?.host ?? address.host, port: proxy?.port ?? address.port)
            .hop(to: executor.loop)
            .whenComplete { result in
                switch result {
                case .success(let channel): self.connected(channel)
                case .failure: self.finish(.failure(WebSocketError(.unreachable)))
                }
            }
    }

    func finish(_ outcome: Result<WebSocketConnection, WebSocketError>) {
        guard !isOver else { return }
        isOver = true
        deadline?.cancel()
        continuation?.resume(returning: outcome)
        continuation = nil
        if case .failure = outcome { channel?.close(promise: nil) }
        channel = nil
    }

    private func connected(_ channel: any Channel) {
        guard !isOver else { return channel.close(promise: nil) }
        self.channel = channel
        do {
            guard let proxy else { return try secure(channel, position: .last) }
            let handler = SOCKSHandler(
                SOCKSHandshake(to: address, credentials: proxy.credentials),
                established: { context in
                    try self.secure(context.channel, position: .after(context.handler))
                },
                failed: { self.finish(.failure(WebSocketError(.proxyRefused))) })
            try channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            // TLS could not be set up, or the socket has ended meanwhile.
            finish(.failure(WebSocketError(.unreachable)))
        }
    }

    private func secure(
        _ channel: any Channel, position: ChannelPipeline.SynchronousOperations.Position
    ) throws {
        let connection = WebSocketConnection(executor: executor, limits: limits, world: world)
        let link = WebSocketLink(
            .client, user: connection, limits: limits, world: world, eventLoop: executor.loop)
        let upgrade = UpgradeHandler(
            UpgradeExchange(to: address, limits: limits, world: world), isSecure: tls != nil,
            serverName: serverName, link: link
        ) { error in
            self.finish(error.map { .failure($0) } ?? .success(connection))
        }
        var handlers: [any ChannelHandler] = [upgrade]
        if let tls {
            handlers.insert(try NIOSSLClientHandler(context: tls, serverHostname: serverName), at: 0)
        }
        try channel.pipeline.syncOperations.addHandlers(handlers, position: position)
    }
}
