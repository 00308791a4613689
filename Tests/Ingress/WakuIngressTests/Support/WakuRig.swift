import CoreMetrics
import Delivery
import NIOPosix
import PushModel
import PushTesting
import Simulators
import StatusPush
import Synchronization
import Testing
import WakuIngress
import WebClient

/// A simulated network with a node of our own and one of somebody else's, and what an ingress needs.
final class WakuRig: Sendable {
    /// Followed by the ingress unless a test says otherwise.
    static let followed: UInt32 = 0x0000_002A

    let network: WakuNetworkSimulator
    let node: WakuNodeSimulator
    let topics = FollowedTopics()
    let outlet: WakuOutlet
    let ingress: WakuIngress
    /// What the ingress hands on, in order.
    let taken: AsyncStream<WakuArrival>
    /// Its notes, in order.
    let journal: AsyncStream<String>
    let web: HTTPSFetch
    private let tally: Noted<[String]>
    private let counter = Mutex<Int64>(0)
    private let ahead = Passed()

    /// - Parameters:
    ///   - knows: the topics are known from the start.
    ///   - take: instead of noting what is handed on.
    init(
        _ knobs: (inout WakuNodeKnobs) -> Void = { _ in }, on network: WakuNetworkSimulator? = nil,
        limits: WakuLimits = WakuRig.limits,
        knows: Bool = true, take: WakuIngress.Take? = nil
    ) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        self.network = network ?? WakuNetworkSimulator()
        var turned = WakuNodeKnobs()
        turned.oversizedBytes = 2 << 20
        knobs(&turned)
        node = WakuNodeSimulator(on: self.network, knobs: turned, eventLoopGroup: group)
        try await node.start()
        web = HTTPSFetch(group: group, world: .live)
        let inlet: AsyncStream<WakuArrival>.Continuation
        (taken, inlet) = AsyncStream.makeStream()
        let (pen, notes) = Journal.notes()
        journal = notes
        let tally = Noted<[String]>([])
        self.tally = tally
        guard let name = ConfiguredName("status-main") else { preconditionFailure("a good name") }
        let address = try #require(node.url.flatMap { WakuNode($0) })
        let note: WakuIngress.Take = { arrival in
            tally.change { $0.append(arrival.message.payload.text) }
            inlet.yield(arrival)
            return true
        }
        outlet = WakuOutlet(
            name: name, node: address, web: web, limits: limits, world: ahead.world,
            metrics: NOOPMetricsHandler.instance)
        ingress = WakuIngress(
            beside: outlet, topics: topics, limits: limits, world: ahead.world,
            journal: pen,
            take: take ?? note)
        if knows { topics.begin(with: [Self.followed]) }
    }

    /// From now on the ingress's monotonic clock is ahead by so much more; what sleeps is not woken for it.
    func pass(_ span: Duration) { ahead.span.withLock { $0 += span } }

    /// How far a clock is ahead of the machine's.
    private final class Passed: Sendable {
        let span = Mutex(Duration.zero)

        var world: World {
            var world = World.live
            world.instant = { World.live.instant() + self.span.withLock { $0 } }
            world.sleep = { try await World.live.sleep($0 - self.span.withLock { $0 }) }
            return world
        }
    }

    /// Spans short enough for a test, none that a loaded machine would trip over.
    static var limits: WakuLimits {
        var limits = WakuLimits()
        limits.poll = .milliseconds(5)...(.milliseconds(10))
        limits.answerBytes = 1 << 20
        limits.callDeadline = .seconds(240)
        limits.backoff = Backoff(base: .milliseconds(20), cap: .milliseconds(50), floorCap: .seconds(60))
        limits.leastRest = .milliseconds(5)
        limits.storeBackoff = Backoff(base: .milliseconds(20), cap: .milliseconds(50), floorCap: .zero)
        limits.storeAttempts = 1_000_000
        limits.storeRest = .milliseconds(1)
        limits.publishWithin = .seconds(240)
        limits.publishBackoff = Backoff(base: .milliseconds(5), cap: .milliseconds(20), floorCap: .zero)
        limits.refusalRest = .milliseconds(100)
        limits.healthEvery = .milliseconds(20)
        limits.tick = .milliseconds(10)
        return limits
    }

    /// Texts of what was handed on so far.
    var texts: [String] { tally.value }

    /// Runs the ingress while `body` does, then stops it and the node.
    func run(_ body: () async throws -> Void) async throws {
        try await beside(ingress.run, stop: ingress.stop, clean: { await node.stop() }, body)
    }

    /// A message of now; no two have one timestamp.
    func message(
        _ text: String, topic: UInt32 = WakuRig.followed, ago: Duration = .zero
    ) -> SimulatedWakuMessage {
        let step = counter.withLock { count in
            count += 1
            return count
        }
        return SimulatedWakuMessage(
            payload: Array(text.utf8), contentTopic: WakuTopic.contentTopic(of: topic),
            timestamp: network.now - ago.wholeMilliseconds * 1_000_000 + step)
    }

    /// A message that the network's others publish.
    func inject(_ text: String, topic: UInt32 = WakuRig.followed) { node.inject(message(text, topic: topic)) }

    /// A message that the store alone has.
    func archive(_ text: String, topic: UInt32 = WakuRig.followed, ago: Duration = .zero) {
        network.archive(message(text, topic: topic, ago: ago), on: WakuNodeSimulator.pubsubTopic)
    }

    func note(_ word: String, file: String = #fileID, line: Int = #line) async throws {
        _ = try await journal.next("the note \(word)", file: file, line: line) { $0 == word }
    }

    func arrival(
        of text: String, file: String = #fileID, line: Int = #line
    ) async throws -> WakuArrival {
        try await taken.next("the message \(text)", file: file, line: line) {
            $0.message.payload.text == text
        }
    }

    /// Waits until all of these were handed on, in whatever order.
    func arrivals(_ wanted: [String], file: String = #fileID, line: Int = #line) async {
        await tally.until(for: "\(wanted.count) messages", file: file, line: line) { texts in
            Set(texts).isSuperset(of: wanted)
        }
    }
}

extension Secret {
    /// Test payloads are texts.
    var text: String { reveal { String(decoding: $0, as: UTF8.self) } }
}
