import NIOCore
import NIOSSL
public import PushModel
public import ServiceLifecycle

/// A push service on this machine: it has a port, and serves until it is told to stop.
public protocol PushSimulator: Service {
    /// Binds the port and serves.
    ///
    /// - Returns: the port, 1 to 65,535.
    /// - Throws: `.portNotFree`, `.certificateNotMade`, `.alreadyStarted`.
    @discardableResult
    func start() async throws(SimulatorError) -> Int
    /// Closes the port and every connection, and ends all subscriptions.
    func stop() async
    /// 1 to 65,535; `nil` before ``start()``.
    var port: Int? { get }
}

extension PushSimulator {
    /// Starts, unless it is already started, and serves until graceful shutdown.
    ///
    /// - Throws: as ``start()``.
    public func run() async throws {
        if port == nil { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }
}

/// The base of a simulator: its port, TLS, and the knobs of its connections.
final class SimulatorServer: Sendable {
    let board: KnobBoard
    private let listener: SimulatorListener
    private let authority: CertificateAuthority
    private let host: String
    private let wantedPort: Int

    init(
        host: String, port: Int, knobs: ConnectionKnobs, authority: CertificateAuthority,
        group: any EventLoopGroup
    ) {
        board = KnobBoard(knobs)
        listener = SimulatorListener(group: group)
        self.authority = authority
        self.host = host
        wantedPort = port
    }

    /// Binds the port; each connection uses TLS, and above it the handler that `handler` makes.
    ///
    /// - Parameter protocols: those that ALPN offers, best first.
    /// - Returns: the port.
    /// - Throws: `.portNotFree`, `.certificateNotMade`, `.alreadyStarted`.
    func start(
        protocols: [String], handler: @escaping @Sendable (KnobBoard) -> any ChannelHandler
    ) async throws(SimulatorError) -> Int {
        guard listener.port == nil else { throw SimulatorError(.alreadyStarted) }
        let tls = try authority.serverContext(protocols: protocols)
        let board = board
        return try await listener.start(host: host, port: wantedPort) { channel in
            let handlers: [any ChannelHandler] = [NIOSSLServerHandler(context: tls), handler(board)]
            try channel.pipeline.syncOperations.addHandlers(handlers)
        }
    }

    /// Closes the port and every connection.
    func stop() async {
        await listener.stop()
        board.closeAll()
    }

    var port: Int? { listener.port }
}
