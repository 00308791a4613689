public import NIOCore
public import PushModel

/// An APNs that judges as Apple's does, over HTTP/2 and TLS, on this machine (docs/push-services.md §3).
///
/// One instance is one environment. It knows the device tokens that were registered (``register(_:as:)``),
/// and, if it learns, all that it receives. What it accepts can be read (``deliveries(after:limit:)``) or
/// awaited (``subscribe(token:)``), as a simulated device does.
///
/// ```swift
/// let authority = try CertificateAuthority()
/// let key = APNsKey()
/// let apns = try APNsSimulator(
///     .init(environment: .production, keys: [key.registration()]), authority: authority,
///     eventLoopGroup: group)
/// let port = try await apns.start()
/// ```
public final class APNsSimulator: PushSimulator {
    let state: APNsState
    let server: SimulatorServer
    private let configuration: APNsSimulatorConfiguration

    /// - Parameter now: the test's own wall clock, else the machine's; token ages, device rates and
    ///   `shutdownUntil` use it.
    /// - Throws: `.keyNotUsable`.
    public convenience init(
        _ configuration: APNsSimulatorConfiguration, authority: CertificateAuthority,
        eventLoopGroup: any EventLoopGroup, now: (@Sendable () -> UnixTime)? = nil
    ) throws(SimulatorError) {
        var world = World.live
        if let now { world.now = now }
        try self.init(configuration, authority: authority, world: world, eventLoopGroup: eventLoopGroup)
    }

    package init(
        _ configuration: APNsSimulatorConfiguration, authority: CertificateAuthority, world: World,
        eventLoopGroup: any EventLoopGroup
    ) throws(SimulatorError) {
        state = try APNsState(configuration, world: world)
        server = SimulatorServer(
            host: configuration.host, port: configuration.port, knobs: configuration.connection,
            authority: authority, group: eventLoopGroup)
        self.configuration = configuration
    }

    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        let state = state
        return try await server.start(protocols: ["h2"]) { board in
            SimulatorConnection(judge: APNsConnectionJudge(state), board: board, world: state.world)
        }
    }

    public func stop() async {
        await server.stop()
        state.finish()
    }

    public var port: Int? { server.port }
    /// Production or sandbox.
    public var environment: APNsEnvironment { configuration.environment }
    /// The simulated clock.
    var now: UnixTime { state.world.now() }
    /// Number of connections that are open now.
    public var openConnections: Int { server.board.connections }
}

// MARK: what a test turns and reads

extension APNsSimulator {
    /// Registers a token, or changes its registration.
    ///
    /// - Parameter token: hex digits in either case.
    public func register(_ token: String, as device: APNsDevice) {
        state.mutate { $0.judge.devices[token.lowercased()] = device }
    }

    /// `nil` for an unknown token.
    public func device(_ token: String) -> APNsDevice? {
        state.mutate { $0.judge.devices[token.lowercased()] }
    }

    /// Forgets a token: from now on 400 `BadDeviceToken` (unless the simulator learns).
    public func forget(_ token: String) {
        state.mutate { $0.judge.devices[token.lowercased()] = nil }
    }

    /// Ends a device's registration, as the removal of its app does: 410 `Unregistered` since `since`.
    public func unregister(_ token: String, since: UnixTime) {
        state.mutate { $0.judge.devices[token.lowercased()]?.state = .removed(since: since) }
    }

    /// A device comes back: what was kept for it is delivered and returned.
    @discardableResult
    public func bringOnline(_ token: String) -> [Delivery] { state.bringOnline(token.lowercased()) }

    /// Puts a key on file.
    ///
    /// - Throws: `.keyNotUsable`.
    public func register(_ key: APNsKeyRegistration) throws(SimulatorError) {
        try state.register(key)
    }

    /// Removes a key from the file: its tokens are then refused with 403 `InvalidProviderToken`.
    public func revoke(keyID: String) { state.mutate { $0.judge.tokens.revoke(keyID: keyID) } }

    /// Binds a key that is on file to some environments: elsewhere its tokens are refused with 403
    /// `BadEnvironmentKeyIdInToken`.
    ///
    /// - Throws: `.keyNotUsable` for a key that is not on file.
    public func bind(keyID: String, to environments: Set<APNsEnvironment>) throws(SimulatorError) {
        guard state.mutate({ $0.judge.tokens.bind(keyID: keyID, to: environments) }) else {
            throw SimulatorError(.keyNotUsable)
        }
    }

    /// Changes what it does beyond judging, from the next request on.
    public func turn(_ change: (inout APNsKnobs) -> Void) { state.turn(change) }
    /// Changes how its connections behave.
    public func turnConnections(_ change: (inout ConnectionKnobs) -> Void) { server.board.turn(change) }
    /// What it does beyond judging, now.
    public var knobs: APNsKnobs { state.knobs }
    /// How its connections behave now.
    public var connectionKnobs: ConnectionKnobs { server.board.knobs }

    /// Ends every open connection with GOAWAY, now.
    public func goAway(_ plan: GoAwayKnob = GoAwayKnob()) { server.board.end(.goAway(plan)) }
    /// Closes every open socket now, without GOAWAY.
    public func killConnections() { server.board.end(.kill) }
    /// Lets the open connections lapse, now.
    public func lapse(_ lapse: ConnectionLapse) { server.board.lapse(lapse) }

    /// What it has counted since the start.
    public var counters: SimulatorCounters { state.counters }

    /// Kept deliveries with a number above `number`, the oldest first.
    public func deliveries(after number: Int = 0, limit: Int = 4096) -> [Delivery] {
        state.deliveries(after: number, limit: limit)
    }

    /// Every delivery to `token` from now on; the empty string stands for all tokens.
    ///
    /// A reader that is more than 1,024 behind loses the oldest (``SimulatorCounters/unheard``). The stream
    /// ends with the simulator.
    public func subscribe(token: String) -> AsyncStream<Delivery> { state.subscribe(token.lowercased()) }
}

/// The judge of one connection: its facts, and the shared state.
private final class APNsConnectionJudge: ConnectionJudge {
    private let state: APNsState
    private var facts = APNsConnectionFacts()

    init(_ state: APNsState) { self.state = state }

    func judge(_ request: SimulatedRequest) -> SimulatedAnswer { state.answer(request, on: &facts) }
}
