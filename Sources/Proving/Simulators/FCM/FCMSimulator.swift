public import NIOCore
import NIOHTTP1
import NIOTLS
public import PushModel

/// An FCM HTTP v1, with the token endpoint that belongs to it, on this machine (docs/push-services.md §5).
///
/// It speaks HTTP/2 by ALPN and HTTP/1.1 on one port. Send to `https://localhost:<port>/v1/projects/…`; the
/// token endpoint is ``tokenURI``.
public final class FCMSimulator: PushSimulator {
    private let state: FCMState
    private let server: SimulatorServer
    private let configuration: FCMSimulatorConfiguration

    /// - Parameter now: the test's own wall clock, else the machine's; token lifetimes and quotas use it.
    /// - Throws: `.keyNotUsable`.
    public convenience init(
        _ configuration: FCMSimulatorConfiguration, authority: CertificateAuthority,
        eventLoopGroup: any EventLoopGroup, now: (@Sendable () -> UnixTime)? = nil
    ) throws(SimulatorError) {
        var world = World.live
        if let now { world.now = now }
        try self.init(configuration, authority: authority, world: world, eventLoopGroup: eventLoopGroup)
    }

    package init(
        _ configuration: FCMSimulatorConfiguration, authority: CertificateAuthority, world: World,
        eventLoopGroup: any EventLoopGroup
    ) throws(SimulatorError) {
        state = try FCMState(configuration, world: world)
        server = SimulatorServer(
            host: configuration.host, port: configuration.port, knobs: configuration.connection,
            authority: authority, group: eventLoopGroup)
        self.configuration = configuration
    }

    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        let state = state
        let protocols = configuration.isPlainOnly ? ["http/1.1"] : ["h2", "http/1.1"]
        let port = try await server.start(protocols: protocols) { board in
            ApplicationProtocolNegotiationHandler { result, channel in
                channel.eventLoop.makeCompletedFuture { try Self.speak(result, channel, state, board) }
            }
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

    public func stop() async {
        await server.stop()
        state.finish()
    }

    public var port: Int? { server.port }
    /// Number of connections that are open now.
    public var openConnections: Int { server.board.connections }
    /// Where access tokens are issued, and the audience that assertions must name; `nil` before
    /// ``start()``.
    public var tokenURI: String? { port.map { "https://localhost:\($0)/token" } }
}

// MARK: what a test turns and reads

extension FCMSimulator {
    /// What the send endpoint says of a device whose quota is used up, JSON.
    public static let deviceQuotaBody = SimulatedFCMError.deviceQuota.body

    /// Registers an address (registration token or installation id), or changes its registration.
    public func register(_ address: String, as device: FCMDevice) {
        state.mutate { $0.judge[address] = device }
    }
    /// What is known of an address; `nil` for an unknown one.
    public func device(_ address: String) -> FCMDevice? { state.mutate { $0.judge[address] } }
    /// Forgets an address: from now on 404 `UNREGISTERED` (unless the simulator learns).
    public func forget(_ address: String) { state.mutate { $0.judge[address] = nil } }

    /// - Throws: `.keyNotUsable`.
    public func register(_ account: ServiceAccountRegistration) throws(SimulatorError) {
        try state.register(account)
    }

    /// Removes an account from the file: its assertions are then refused with 401 `invalid_client`.
    public func remove(accountEmail: String) { state.mutate { $0.judge.tokens.remove(email: accountEmail) } }

    /// Forgets access tokens before they expire: 401 at the send endpoint.
    public func revokeAccessTokens() { state.mutate { $0.judge.tokens.revokeAll() } }

    /// Changes what it does beyond judging, from the next request on.
    public func turn(_ change: (inout FCMKnobs) -> Void) { state.turn(change) }
    /// Changes how its connections behave.
    public func turnConnections(_ change: (inout ConnectionKnobs) -> Void) { server.board.turn(change) }
    /// What it does beyond judging, now.
    public var knobs: FCMKnobs { state.mutate { $0.knobs } }
    /// How its connections behave now.
    public var connectionKnobs: ConnectionKnobs { server.board.knobs }
    /// Ends every open connection with GOAWAY, now.
    public func goAway(_ plan: GoAwayKnob = GoAwayKnob()) { server.board.end(.goAway(plan)) }
    /// Closes every open socket, now, without a word.
    public func killConnections() { server.board.end(.kill) }
    /// Lets the open HTTP/2 connections lapse, now.
    public func lapse(_ lapse: ConnectionLapse) { server.board.lapse(lapse) }
    /// What it has counted since the start.
    public var counters: SimulatorCounters { state.counters }

    /// Kept deliveries with a number above `number`, the oldest first.
    public func deliveries(after number: Int = 0, limit: Int = 4096) -> [Delivery] {
        state.deliveries(after: number, limit: limit)
    }

    /// Every delivery to `address` from now on; the empty string stands for all of them.
    public func subscribe(address: String) -> AsyncStream<Delivery> { state.subscribe(address) }
}

private final class FCMConnectionJudge: ConnectionJudge {
    private let state: FCMState
    init(_ state: FCMState) { self.state = state }
    func judge(_ request: SimulatedRequest) -> SimulatedAnswer { state.answer(request) }
    func isPush(_ request: SimulatedRequest) -> Bool { !FCMState.isForToken(request) }
}
