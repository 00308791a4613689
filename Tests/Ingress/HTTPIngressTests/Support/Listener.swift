import CoreMetrics
import HTTPIngress
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import ServiceLifecycle

/// A face whose answers a test decides.
struct ProbeFace: HTTPFace {
    let name: ConfiguredName
    var credentialField = "authorization"
    let routes: [HTTPRoute]
    let body: @Sendable (HTTPInbound) async -> HTTPOutbound

    init(
        _ name: String = "probe",
        _ routes: [HTTPRoute] = [HTTPRoute(.exact("/echo"), bodyLimitBytes: 1024, tag: 7)],
        _ body: @escaping @Sendable (HTTPInbound) async -> HTTPOutbound = { ProbeFace.echo($0) }
    ) {
        self.name = configured(name)
        self.routes = routes
        self.body = body
    }

    /// Says back what arrived.
    static func echo(_ inbound: HTTPInbound) -> HTTPOutbound {
        HTTPOutbound(200, .octets, Array(inbound.body.readableBytesView))
    }

    /// Says back what arrived, once the gate is open.
    static func held(by gate: Gate) -> ProbeFace {
        ProbeFace { inbound in
            await gate.wait()
            return echo(inbound)
        }
    }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound { await body(inbound) }

    func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        .text(refusal == .bodyTooLarge ? 400 : refusal.status, "face refuses \(refusal.rawValue)")
    }
}

/// For tests that are of no deadline, or set theirs in `change`: a machine that stands still is no slow client,
/// and one that has no time to read its refusal has not refused to.
func patientLimits(_ change: (inout IngressLimits) -> Void = { _ in }) -> IngressLimits {
    var limits = IngressLimits()
    // So short that nobody need wait for it.
    limits.sweep = .milliseconds(20)
    limits.head = .seconds(600)
    limits.bodyGrace = .seconds(600)
    limits.answer = .seconds(600)
    limits.idle = .seconds(600)
    limits.linger = .seconds(600)
    // All of a test's clients come from one address, unless it is of shares.
    limits.clientConnections = limits.connections
    change(&limits)
    return limits
}

/// Runs a listener over the faces on a free port, gives it to `body`, and stops it gracefully.
///
/// - Parameter load: told of every change of the listener's load.
func withListener<Result: Sendable>(
    _ faces: [any HTTPFace] = [ProbeFace()], limits: IngressLimits = patientLimits(), tls: TLSFiles? = nil,
    proxies: TrustedProxies = TrustedProxies(), metrics: any MetricsFactory = NOOPMetricsHandler.instance,
    world: World = .live, load: Signal = Signal(),
    strained: @escaping @Sendable (Set<ListenerStrain>) -> Void = { _ in },
    _ body: (HTTPListener, Int) async throws -> Result
) async throws -> Result {
    let listener = try HTTPListener(
        configured("public"), at: .init(host: "127.0.0.1", port: 0), tls: tls, proxies: proxies,
        router: HTTPRouter(faces), limits: limits, group: MultiThreadedEventLoopGroup.singleton, world: world,
        journal: .silent, metrics: metrics, strained: strained, loadChanged: { load.changed() })
    let port = try await listener.open()
    let group = ServiceGroup(services: [listener], gracefulShutdownSignals: [], logger: silentLogger)
    return try await beside(group.run, stop: group.triggerGracefulShutdown) { try await body(listener, port) }
}

/// Runs a listener as `withListener` does; `body` has a client's connection to it, which is closed then.
func withClient(
    _ faces: [any HTTPFace] = [ProbeFace()], limits: IngressLimits = patientLimits(),
    proxies: TrustedProxies = TrustedProxies(), metrics: any MetricsFactory = NOOPMetricsHandler.instance,
    world: World = .live, load: Signal = Signal(), _ body: (HTTPListener, RawClient) async throws -> Void
) async throws {
    try await withListener(
        faces, limits: limits, proxies: proxies, metrics: metrics, world: world, load: load
    ) { listener, port in
        let client = try await RawClient.connect(port)
        try await body(listener, client)
        client.close()
    }
}

extension ManualClock {
    /// Lets a sweep or more of time pass; the listener has looked at every deadline when this returns.
    func pass(_ span: Duration) async throws {
        await sleepers(atLeast: 1)
        // A connection is counted before it reads the clock for its deadline.
        try await turn()
        advance(by: span)
        await sleepers(atLeast: 1)
        // The sweep has handed each event loop a task.
        try await turn()
    }

    /// Waits until each event loop has done what it was given before.
    private func turn() async throws {
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { try await loop.submit {}.get() }
    }
}

/// A request with a body of known length.
func post(_ path: String, _ body: String, _ extra: String = "") -> String {
    "POST \(path) HTTP/1.1\r\nHost: t\r\n\(extra)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
}

func get(_ path: String, _ extra: String = "") -> String { "GET \(path) HTTP/1.1\r\nHost: t\r\n\(extra)\r\n" }
