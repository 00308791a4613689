import CoreMetrics
import Delivery
import EventLoops
import MarmotPublishing
import MarmotPush
import NIOPosix
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Synchronization
import Testing
import WebSocket

/// What an ingress took in, in order.
struct Taken: Sendable {
    let event: NostrEvent
    let standing: EventSource
}

/// Simulated relays on sockets of their own, and what an ingress needs to listen at them.
final class ListeningRig: Sendable {
    let relays: [NostrRelaySimulator]
    let key: Secp256k1KeyPair
    let taken: AsyncStream<Taken>
    let client: WebSocketClient
    /// What the ingress notes of its relays, in order.
    let journal: AsyncStream<String>
    private let pen: Journal
    private let inlet: AsyncStream<Taken>.Continuation
    private let count = Mutex(0)
    private let group = MultiThreadedEventLoopGroup.singleton

    /// Relays without TLS on free ports.
    init(
        _ configuration: NostrRelayConfiguration = NostrRelayConfiguration(), relays count: Int = 1,
        _ knobs: (inout NostrRelayKnobs) -> Void = { _ in }
    ) async throws {
        var configuration = configuration
        configuration.isSecure = false
        knobs(&configuration.knobs)
        key = .generate(.live)
        (taken, inlet) = AsyncStream.makeStream()
        (pen, journal) = Journal.notes()
        var bounds = WebSocketLimits()
        bounds.connectDeadline = .seconds(600)
        bounds.writeDeadline = .seconds(600)
        bounds.pingAfterSilence = .seconds(600)
        bounds.pongDeadline = .seconds(600)
        client = try WebSocketClient(executor: LoopExecutor(group.next()), limits: bounds)
        var relays: [NostrRelaySimulator] = []
        for _ in 0..<count {
            let relay = NostrRelaySimulator(configuration, authority: nil, eventLoopGroup: group)
            try await relay.start()
            relays.append(relay)
        }
        self.relays = relays
    }

    func plan(
        _ relays: [Int]? = nil, keys: [Secp256k1KeyPair]? = nil, backlog: NostrBacklog = .live,
        testsItself: Bool = false
    ) throws -> NostrSettings {
        let urls = (relays ?? Array(self.relays.indices)).compactMap { self.relays[$0].url }
        return NostrSettings(
            relays: try urls.map { try NostrRelay($0) }, keys: keys ?? [key], backlog: backlog,
            testsItself: testsItself)
    }

    /// Spans short enough for a test, none that a loaded machine would trip over.
    static var limits: NostrLimits {
        var limits = NostrLimits()
        limits.tick = .milliseconds(20)
        limits.authentication = .seconds(600)
        limits.endOfStored = .seconds(600)
        limits.listAnswer = .seconds(600)
        limits.greeting = .milliseconds(100)
        limits.eagerRedial = .milliseconds(100)
        limits.backoff = Backoff(base: .milliseconds(50), cap: .milliseconds(200), floorCap: .zero)
        return limits
    }

    func ingress(
        _ plan: NostrSettings, limits: NostrLimits = ListeningRig.limits, membership: Membership? = nil,
        metrics: any MetricsFactory = NOOPMetricsHandler.instance, take: NostrIngress.Take? = nil
    ) throws -> NostrIngress {
        guard let name = ConfiguredName("marmot-main") else { preconditionFailure("a good name") }
        return NostrIngress(
            name: name, settings: plan, client: client, membership: membership, limits: limits, world: .live,
            journal: pen, metrics: metrics, take: take ?? self.take)
    }

    var take: NostrIngress.Take {
        { event, standing, _ in
            self.count.withLock { $0 += 1 }
            self.inlet.yield(Taken(event: event, standing: standing))
        }
    }

    /// Waits until so many subscriptions have come into force: what a relay says before is not taken.
    func listening(_ count: Int = 1, file: String = #fileID, line: Int = #line) async throws {
        for number in 1...count {
            _ = try await journal.next("subscription \(number) of \(count)", file: file, line: line) {
                $0 == "listening"
            }
        }
    }

    var takenCount: Int { count.withLock { $0 } }

    /// Runs the ingress while `body` does, then stops it and the relays.
    func run(_ ingress: NostrIngress, _ body: () async throws -> Void) async throws {
        try await beside(
            ingress.run, stop: ingress.stop, clean: { for relay in relays { await relay.stop() } }, body)
    }

    /// A wrap that a relay passes on; it opens for nobody.
    func wrap(
        to key: XOnlyKey? = nil, kind: Int = NostrKind.giftWrap, bytes: Int = 100, createdAt: Int64? = nil
    ) -> NostrEvent {
        .signed(
            kind: kind, createdAt: createdAt ?? World.live.now().seconds,
            tags: [["p", (key ?? self.key.publicKey).hex]],
            content: Secret([UInt8](repeating: 0x61, count: bytes)), by: .generate(.live),
            auxiliary: World.live.randomBytes(32))
    }
}

extension NostrRelayNote {
    var isRequest: Bool { if case .requested = self { true } else { false } }
    var isDisconnection: Bool { if case .disconnected = self { true } else { false } }
    var list: NostrEvent? {
        if case .published(let event, _) = self, event.kind == NostrKind.relayList { event } else { nil }
    }
}

extension AsyncStream<NostrRelayNote> {
    /// Waits for the next request: from then on a relay sends live events.
    func request(file: String = #fileID, line: Int = #line) async throws -> [NostrFilter] {
        let note = try await next("a request", file: file, line: line) { $0.isRequest }
        if case .requested(_, let filters) = note { return filters }
        return []
    }

    /// Waits for the next list of relays.
    func list(file: String = #fileID, line: Int = #line) async throws -> NostrEvent {
        let note = try await next("a list of relays", file: file, line: line) { $0.list != nil }
        return try #require(note.list)
    }
}
