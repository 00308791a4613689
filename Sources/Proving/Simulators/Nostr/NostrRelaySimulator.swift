public import MarmotPush
public import NIOCore
import NIOPosix
import NIOSSL
public import PushModel
public import ServiceLifecycle
import WebSocket

/// A Nostr relay on this machine: NIP-01, NIP-11 and NIP-42, within bounds, and as unreliable as a test
/// wants.
///
/// ```swift
/// let relay = NostrRelaySimulator(.init(), authority: authority, eventLoopGroup: group)
/// try await relay.start()
/// let url = relay.url  // wss://127.0.0.1:…
/// ```
public final class NostrRelaySimulator: Service {
    private let hub: NostrRelayHub
    private let listener: SimulatorListener
    private let configuration: NostrRelayConfiguration
    private let authority: CertificateAuthority?

    /// With the machine's clocks.
    ///
    /// - Parameter authority: issues its certificate; without one it does not use TLS.
    public convenience init(
        _ configuration: NostrRelayConfiguration = NostrRelayConfiguration(),
        authority: CertificateAuthority?, eventLoopGroup: any EventLoopGroup
    ) {
        self.init(configuration, authority: authority, world: .live, eventLoopGroup: eventLoopGroup)
    }

    /// Without TLS, on event loops that the process shares.
    public convenience init(_ configuration: NostrRelayConfiguration = NostrRelayConfiguration()) {
        self.init(configuration, authority: nil, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    }

    package init(
        _ configuration: NostrRelayConfiguration, authority: CertificateAuthority?, world: World,
        eventLoopGroup: any EventLoopGroup
    ) {
        var configuration = configuration
        if authority == nil { configuration.isSecure = false }
        self.configuration = configuration
        self.authority = authority
        hub = NostrRelayHub(configuration, world: world)
        listener = SimulatorListener(group: eventLoopGroup)
    }

    /// Binds the port and serves.
    ///
    /// - Returns: the port, 1 to 65,535.
    /// - Throws: `.portNotFree`, `.certificateNotMade`, `.alreadyStarted`.
    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        guard listener.port == nil else { throw SimulatorError(.alreadyStarted) }
        var tls: NIOSSLContext?
        if configuration.isSecure { tls = try authority?.serverContext(protocols: ["http/1.1"]) }
        var limits = WebSocketLimits()
        limits.messageBytes = configuration.messageBytes
        // `waitingBytes` limits what waits for a client that does not read. There is no time limit, because
        // the client may be on a machine without time for it.
        limits.connectDeadline = .seconds(600)
        limits.pingAfterSilence = .seconds(600)
        limits.pongDeadline = .seconds(600)
        let (hub, context, bounds) = (hub, tls, limits)
        return try await listener.start(host: configuration.host, port: configuration.port) { channel in
            if let context {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
            }
            try WebSocketServer.configure(
                channel, limits: bounds, world: hub.world, plain: { NostrRelayDocument(hub) },
                user: { NostrRelayConnection(hub, channel: $0, head: $1) })
        }
    }

    /// Starts, unless it is already started, and serves until graceful shutdown.
    ///
    /// - Throws: as ``start()``.
    public func run() async throws {
        if listener.port == nil { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }

    /// Closes the port and every connection, and ends all notes.
    public func stop() async {
        await listener.stop()
        hub.stop()
    }

    /// 1 to 65,535; `nil` before ``start()``.
    public var port: Int? { listener.port }

    /// What clients dial; `nil` before ``start()``.
    public var url: String? {
        port.map { "\(configuration.isSecure ? "wss" : "ws")://\(configuration.host):\($0)" }
    }

    /// Number of WebSockets that are open now.
    public var openConnections: Int { hub.connectionCount }
}

// MARK: what a test turns and reads

extension NostrRelaySimulator {
    /// Changes how it behaves, from the next message on.
    public func turn(_ change: (inout NostrRelayKnobs) -> Void) { hub.turn(change) }
    /// How it behaves now.
    public var knobs: NostrRelayKnobs { hub.knobs }
    /// What it has counted since the start.
    public var counters: NostrRelayCounters { hub.counters }

    /// What is kept now, newest first.
    public var events: [NostrEvent] { hub.stored }

    /// Forgets every event, like a relay that lost its disk.
    public func forget() { hub.forget() }

    /// Keeps an event and passes it on, unchecked: forged and old ones too.
    public func inject(_ event: NostrEvent) {
        let text = event.serialized().reveal { ByteBuffer(bytes: $0) }
        let number = hub.take(event, text: text).number
        hub.spread(event, text: text, number: number)
    }

    /// Sends an event `count` times to a subscription of every connection, as fast as each reads. Nothing is
    /// kept.
    public func flood(_ event: NostrEvent, count: Int) {
        flood([event], count: count)
    }

    /// The same with several events in turn, `count` in all.
    public func flood(_ events: [NostrEvent], count: Int) {
        for connection in hub.connections { connection.flood(events, count: count) }
    }

    /// Sends any text message unchanged to every connection.
    ///
    /// - Parameter text: makes the message from the name of one of the connection's subscriptions; empty
    ///   without one.
    public func say(_ text: @escaping @Sendable (_ subscription: String) -> [UInt8]) {
        for connection in hub.connections { connection.say(text) }
    }

    /// Sends every client a close frame now.
    public func closeConnections(code: UInt16 = 1001) {
        for connection in hub.connections { connection.end(WebSocketCloseCode(rawValue: code)) }
    }

    /// Closes every open socket now, without a close frame.
    public func killConnections() {
        for connection in hub.connections { connection.end(nil) }
    }

    /// Notes from now on. A reader that is more than 4,096 behind loses the oldest
    /// (``NostrRelayCounters/unheard``). The stream ends with the relay.
    public func notes() -> AsyncStream<NostrRelayNote> { hub.notes() }
}
