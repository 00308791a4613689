package import NIOCore
import NIOHTTP1
import PushModel
import ServiceLifecycle

/// A Waku node's REST interface on this machine, as unreliable as a test wants.
///
/// ```swift
/// let network = WakuNetworkSimulator()
/// let node = WakuNodeSimulator(on: network, eventLoopGroup: group)
/// try await node.start()
/// let url = node.url  // http://127.0.0.1:…
/// ```
///
/// Clients of different nodes on one network receive each other's messages. Two clients of one node take
/// messages away from each other, as at a real node, which forgets what it has handed out.
package final class WakuNodeSimulator: PushSimulator {
    /// The topic of Status's network, which carries all messages.
    package static let pubsubTopic = "/waku/2/rs/16/32"

    package let name: String
    package let network: WakuNetworkSimulator
    private let hub: WakuNodeHub
    private let listener: SimulatorListener
    private let board = KnobBoard(ConnectionKnobs())
    private let wantedPort: Int

    /// - Parameters:
    ///   - name: its name at the control endpoint.
    ///   - port: 0: any free one.
    package init(
        on network: WakuNetworkSimulator, name: String = "waku", port: Int = 0,
        knobs: WakuNodeKnobs = WakuNodeKnobs(), eventLoopGroup: any EventLoopGroup
    ) {
        self.name = name
        self.network = network
        wantedPort = port
        hub = WakuNodeHub(network, knobs)
        listener = SimulatorListener(group: eventLoopGroup)
    }

    /// Binds the port, serves, and listens to the network.
    ///
    /// - Returns: the port.
    /// - Throws: `.portNotFree`, `.alreadyStarted`.
    @discardableResult
    package func start() async throws(SimulatorError) -> Int { try await start(port: wantedPort) }

    private func start(port: Int) async throws(SimulatorError) -> Int {
        guard listener.port == nil else { throw SimulatorError(.alreadyStarted) }
        let (hub, board) = (hub, board)
        let port = try await listener.start(host: "127.0.0.1", port: port) { channel in
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            try channel.pipeline.syncOperations.addHandler(
                PlainConnection(
                    judge: WakuNodeJudge(hub), board: board, world: hub.network.world,
                    bodyKept: WakuNodeJudge.bodyKept))
        }
        hub.start()
        return port
    }

    /// Starts, unless it is already started, and serves until graceful shutdown.
    package func run() async throws {
        if listener.port == nil { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }

    /// Closes the port and every connection, and ends all notes.
    package func stop() async {
        await away()
        hub.finish()
    }

    /// Closes the port and every connection; subscriptions and waiting messages are lost. ``back(at:)``
    /// starts it again.
    package func away() async {
        hub.stop()
        await listener.stop()
        board.closeAll()
    }

    /// Comes back at the port that it had.
    package func back(at port: Int) async throws(SimulatorError) { _ = try await start(port: port) }

    /// `nil` before ``start()``, and while it is away.
    package var port: Int? { listener.port }
    /// The address for the clients' configuration; `nil` before ``start()``.
    package var url: String? { port.map { "http://127.0.0.1:\($0)" } }
}

// MARK: what a test turns and reads

extension WakuNodeSimulator {
    package func turn(_ change: (inout WakuNodeKnobs) -> Void) { hub.turn(change) }
    package var knobs: WakuNodeKnobs { hub.knobs }
    /// Whether a client has subscribed to any topic.
    package var isSubscribed: Bool { hub.isSubscribed }
    /// Messages that nobody has polled yet.
    package var waiting: Int { hub.waiting }

    /// Forgets subscriptions and messages, and goes on.
    package func forget() { hub.forget() }

    /// A message of this network from a foreign node.
    package func inject(_ message: SimulatedWakuMessage) { network.publish(message, on: Self.pubsubTopic) }

    /// Notes from now on.
    package func notes() -> AsyncStream<WakuNodeNote> { hub.notes() }
}

extension WakuNodeSimulator: SteeredSimulator {
    /// Calls, published messages, and refusals by their status.
    package var counters: SimulatorCounters { hub.counters }
    package var openConnections: Int { board.connections }
    /// None: published messages go to the network's other nodes.
    package func deliveries(after number: Int, limit: Int) -> [Delivery] { [] }
    package var connectionKnobs: ConnectionKnobs { board.knobs }
    package func turnConnections(_ change: (inout ConnectionKnobs) -> Void) { board.turn(change) }
    /// HTTP/1.1 has no GOAWAY: every connection ends.
    package func goAway(_ plan: GoAwayKnob) { killConnections() }
    package func killConnections() { board.end(.kill) }

    package func turn(_ order: SteeringOrder) throws(SimulatorError) {
        var knobs = knobs
        try knobs.turn(order.tree)
        let turned = knobs
        turn { $0 = turned }
    }

    /// - Throws: `.knobNotKnown`, because it has no devices.
    package func register(_ order: SteeringOrder) throws(SimulatorError) {
        throw SimulatorError(.knobNotKnown)
    }
}
