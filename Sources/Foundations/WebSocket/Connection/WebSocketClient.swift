package import Dialling
package import EventLoops
import NIOCore
import NIOSSL
package import PushModel

/// Opens WebSockets as a client: TCP or a SOCKS5 tunnel, TLS, upgrade.
///
/// All of it is one address's attempt: a relay of which an address is dead, or takes connections and says
/// nothing, is reached by another. Connections live on the event loop of `executor`.
package struct WebSocketClient: Sendable {
    package let executor: LoopExecutor
    package let limits: WebSocketLimits
    private let world: World
    private let tls: NIOSSLContext
    private let dialer: Dialer

    /// - Parameters:
    ///   - certificates: PEM text of the CAs to trust; `nil`: the system's.
    ///   - dialling: how names of relays and proxies are looked up and tried.
    /// - Throws: `.badCertificateFile`.
    package init(
        executor: LoopExecutor, limits: WebSocketLimits = WebSocketLimits(), certificates: [UInt8]? = nil,
        dialling: DialOptions = DialOptions(), world: World = .live
    ) throws(WebSocketError) {
        self.executor = executor
        dialer = Dialer(dialling)
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

    /// Connects, within ``WebSocketLimits/connectDeadline`` over all addresses of the name.
    ///
    /// With a proxy, the target's name goes to the proxy and to no resolver of this machine. An onion address
    /// without one is refused before anything is asked.
    ///
    /// - Parameter publicAddressesOnly: whether somebody else named the host. All its addresses must then be
    ///   public, and no other is dialled; the look-up ends with the caller's task. The proxy judges for
    ///   itself.
    /// - Throws: `.onionNeedsProxy`, `.forbiddenAddress`, `.unreachable`, `.proxyRefused`, `.tlsFailed`,
    ///   `.upgradeRefused`, `.badUpgrade`, `.connectDeadline`, `.cancelled`.
    package func connect(
        _ address: WebSocketAddress, proxy: SOCKS5Proxy? = nil, publicAddressesOnly: Bool = false
    ) async throws(WebSocketError) -> WebSocketConnection {
        guard proxy != nil || !address.isOnion else { throw WebSocketError(.onionNeedsProxy) }
        let judged = publicAddressesOnly && proxy == nil ? try await publicAddresses(address) : nil
        let way = WebSocketWay(
            address: address, proxy: proxy, tls: address.isSecure ? tls : nil, limits: limits, world: world,
            executor: executor)
        do throws(DialFault) {
            return try await dialer.dial(
                proxy?.host ?? address.host, proxy?.port ?? address.port, on: executor.loop,
                within: proxy == nil ? limits.connectDeadline : limits.proxiedConnectDeadline,
                addresses: judged,
                prepare: { try way.prepare($0, $1) }
            ).ready
        } catch {
            throw Self.translated(error)
        }
    }

    /// One private address among public ones is a trap, so all of them must be fit.
    private func publicAddresses(_ address: WebSocketAddress) async throws(WebSocketError) -> [IPAddress] {
        let found: [IPAddress]
        do throws(WebError) {
            if let literal = address.literal {
                found = [literal]
            } else {
                found = try await dialer.options.resolver.resolve(address.host)
            }
        } catch {
            throw WebSocketError(Task.isCancelled ? .cancelled : .unreachable)
        }
        guard found.allSatisfy(\.isGlobal) else { throw WebSocketError(.forbiddenAddress) }
        return found
    }

    private static func translated(_ fault: DialFault) -> WebSocketError {
        switch fault {
        case .failed(let error): error as? WebSocketError ?? WebSocketError(.unreachable)
        case .unresolved, .unreachable: WebSocketError(.unreachable)
        case .late, .silent: WebSocketError(.connectDeadline)
        case .cancelled: WebSocketError(.cancelled)
        }
    }
}

/// From TCP to the upgraded connection: what one attempt puts on its channel, made anew for each.
private struct WebSocketWay: Sendable {
    let address: WebSocketAddress
    let proxy: SOCKS5Proxy?
    let tls: NIOSSLContext?
    let limits: WebSocketLimits
    let world: World
    let executor: LoopExecutor

    /// SNI names hosts only (RFC 6066 §3).
    private var serverName: String? { address.literal == nil ? address.host : nil }

    func prepare(_ channel: any Channel, _ attempt: DialAttempt<WebSocketConnection>) throws {
        guard let proxy else { return try secure(channel, attempt, position: .last) }
        let handler = SOCKSHandler(
            SOCKSHandshake(to: address, credentials: proxy.credentials),
            heard: { attempt.hear() },
            established: { context in
                try secure(context.channel, attempt, position: .after(context.handler))
            },
            failed: { attempt.fail(WebSocketError(.proxyRefused)) })
        try channel.pipeline.syncOperations.addHandler(handler)
    }

    private func secure(
        _ channel: any Channel, _ attempt: DialAttempt<WebSocketConnection>,
        position: ChannelPipeline.SynchronousOperations.Position
    ) throws {
        let connection = WebSocketConnection(executor: executor, limits: limits, world: world)
        let link = WebSocketLink(
            .client, user: connection, limits: limits, world: world, eventLoop: executor.loop)
        let upgrade = UpgradeHandler(
            UpgradeExchange(to: address, limits: limits, world: world), isSecure: tls != nil,
            serverName: serverName, link: link
        ) { error in
            if let error { attempt.fail(error) } else { attempt.succeed(connection) }
        }
        var handlers: [any ChannelHandler] = [upgrade]
        if let tls {
            handlers.insert(try NIOSSLClientHandler(context: tls, serverHostname: serverName), at: 0)
        }
        try channel.pipeline.syncOperations.addHandlers(handlers, position: position)
    }
}
