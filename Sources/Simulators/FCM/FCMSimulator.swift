public import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS
public import PushModel
public import ServiceLifecycle

/// An FCM HTTP v1, with the token endpoint that belongs to it, on this machine (push-services §5).
///
/// It speaks HTTP/2 by ALPN and HTTP/1.1 on one port. Send to `https://localhost:<port>/v1/projects/…`; the
/// token endpoint is ``tokenURI``.
public final class FCMSimulator: Service {
    private let state: FCMState
    private let board: KnobBoard
    private let listener: SimulatorListener
    private let configuration: FCMSimulatorConfiguration
    private let authority: CertificateAuthority

    /// With the machine's clocks.
    ///
    /// - Throws: `.keyNotUsable`.
    public convenience init(
        _ configuration: FCMSimulatorConfiguration, authority: CertificateAuthority,
        eventLoopGroup: any EventLoopGroup
    ) throws(SimulatorError) {
        try self.init(configuration, authority: authority, world: .live, eventLoopGroup: eventLoopGroup)
    }

    /// With a wall clock of the test's own: token lives and quotas go by it.
    ///
    /// - Throws: `.keyNotUsable`.
    public convenience init(
        _ configuration: FCMSimulatorConfiguration, authority: CertificateAuthority,
        eventLoopGroup: any EventLoopGroup, now: @escaping @Sendable () -> UnixTime
    ) throws(SimulatorError) {
        var world = World.live
        world.now = now
        try self.init(configuration, authority: authority, world: world, eventLoopGroup: eventLoopGroup)
    }

    package init(
        _ configuration: FCMSimulatorConfiguration, authority: CertificateAuthority, world: World,
        eventLoopGroup: any EventLoopGroup
    ) throws(SimulatorError) {
        state = try FCMState(configuration, world: world)
        board = KnobBoard(configuration.connection)
        listener = SimulatorListener(group: eventLoopGroup)
        self.configuration = configuration
        self.authority = authority
    }

    /// Binds the port and serves.
    ///
    /// - Returns: the port.
    /// - Throws: `.portNotFree`, `.certificateNotMade`, `.alreadyStarted`.
    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        guard listener.port == nil else { throw SimulatorError(.alreadyStarted) }
        let tls = try authority.serverContext(
            protocols: configuration.isPlainOnly ? ["http/1.1"] : ["h2", "http/1.1"])
        let (state, board) = (state, board)
        let port = try await listener.start(host: configuration.host, port: configuration.port) { channel in
            let negotiation = ApplicationProtocolNegotiationHandler { result, channel in
                channel.eventLoop.makeCompletedFuture { try Self.speak(result, channel, state, board) }
            }
            try channel.pipeline.syncOperations.addHandlers(NIOSSLServerHandler(context: tls), negotiation)
        }
        state.mutate { inner in
            for host in ["localhost", "127.0.0.1"] { inner.audiences.insert("https://\(host):\(port)/token") }
        }
        return port
    }

    private static func speak(
        _ result: ALPNResult, _ channel: any Channel, _ state: FCMState, _ board: KnobBoard
    ) throws {
        let judge = FCMConnectionJudge(state)
        if case .negotiated("h2") = result {
            try channel.pipeline.syncOperations.addHandler(
                SimulatorConnection(judge: judge, board: board, world: state.world))
        } else {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            try channel.pipeline.syncOperations.addHandler(
                PlainConnection(judge: judge, board: board, world: state.world))
        }
    }

    /// Starts, unless that was done, and serves until graceful shutdown.
    public func run() async throws {
        if listener.port == nil { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }

    /// Closes the port and every connection, and ends all subscriptions.
    public func stop() async {
        await listener.stop()
        board.closeAll()
        state.finish()
    }

    /// `nil` before ``start()``.
    public var port: Int? { listener.port }
    public var openConnections: Int { board.connections }
    /// Where access tokens are to be had, and the audience that assertions must name; `nil` before
    /// ``start()``.
    public var tokenURI: String? { port.map { "https://localhost:\($0)/token" } }
}

// MARK: what a test turns and reads

extension FCMSimulator {
    /// Makes an address (registration token or installation id) known, or changes what is known of it.
    public func register(_ address: String, as device: FCMDevice) {
        state.mutate { $0.judge[address] = device }
    }
    public func device(_ address: String) -> FCMDevice? { state.mutate { $0.judge[address] } }
    public func forget(_ address: String) { state.mutate { $0.judge[address] = nil } }

    /// - Throws: `.keyNotUsable`.
    public func register(_ account: ServiceAccountRegistration) throws(SimulatorError) {
        try state.register(account)
    }

    /// Takes an account from the file: its assertions become 401 `invalid_client`.
    public func remove(accountEmail: String) { state.mutate { $0.judge.tokens.remove(email: accountEmail) } }

    /// Access tokens become unknown before their time: 401 at the send endpoint.
    public func revokeAccessTokens() { state.mutate { $0.judge.tokens.revokeAll() } }

    public func turn(_ change: (inout FCMKnobs) -> Void) { state.turn(change) }
    public func turnConnections(_ change: (inout ConnectionKnobs) -> Void) { board.turn(change) }
    public var knobs: FCMKnobs { state.mutate { $0.knobs } }
    public var connectionKnobs: ConnectionKnobs { board.knobs }
    public func goAway(_ plan: GoAwayPlan = GoAwayPlan()) { board.end(.goAway(plan)) }
    public func killConnections() { board.end(.kill) }
    public var counters: SimulatorCounters { state.mutate { $0.log.counters } }

    /// Deliveries with a number above `number` that are still kept, the oldest first.
    public func deliveries(after number: Int = 0, limit: Int = 4096) -> [Delivery] {
        state.mutate { $0.log.deliveries(after: number, limit: limit) }
    }

    /// Every delivery to `address` from now on; the empty string stands for all of them.
    public func subscribe(address: String) -> AsyncStream<Delivery> { state.subscribe(address) }
}

private final class FCMConnectionJudge: ConnectionJudge {
    private let state: FCMState
    init(_ state: FCMState) { self.state = state }
    func judge(_ request: SimulatedRequest) -> SimulatedAnswer { state.answer(request) }
}
