import Delivery
import MarmotPush
import NostrIngress
import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing

@Suite("A relay that floods", .timeLimit(.minutes(30)))
struct FloodTests {
    /// The order in which a single worker took events.
    private final class Order: Sendable {
        private let ids = Mutex<[[UInt8]]>([])

        func add(_ id: [UInt8]) -> Int {
            ids.withLock { ids in
                ids.append(id)
                return ids.count
            }
        }

        /// How many came before the event; `nil` when it has not come.
        func before(_ id: [UInt8]) -> Int? { ids.withLock { $0.firstIndex(of: id) } }
    }

    /// What an event takes of a share.
    private static func size(_ event: NostrEvent) -> Int {
        WrapArrival(event: event, source: .live, relay: 0).size
    }

    @Test(
        "A wrap waits for one event of each other relay that floods, and the queue stays as short as it is",
        arguments: [(floods: 1, distinct: 1, share: 8), (1, 50, 8), (5, 1, 4)])
    func turns(_ floods: Int, _ distinct: Int, _ share: Int) async throws {
        let rig = try await ListeningRig(relays: floods + 1)
        let (flooding, honest) = (rig.relays.prefix(floods), rig.relays[floods])
        var limits = ListeningRig.limits
        (limits.queuedBytes, limits.leastShare, limits.workers) = (0, share * Self.size(rig.wrap()), 1)
        let gauge = QueueGauge()
        let order = Order()
        let (began, beginning) = AsyncStream.makeStream(of: Void.self)
        let (found, finding) = AsyncStream.makeStream(of: Void.self)
        let gate = Bell()
        let good = rig.wrap()
        let ingress = try rig.ingress(try rig.plan(), limits: limits, metrics: gauge) { event, _, _ in
            if order.add(event.id) == 1 {
                beginning.yield()
                await gate.waitThroughCancellation()
            }
            if event.id == good.id { finding.yield() }
        }
        let flood = 1_000_000
        try await rig.run(ingress) {
            try await rig.listening(floods + 1)
            for relay in flooding { relay.flood((0..<distinct).map { _ in rig.wrap() }, count: flood) }
            _ = try await began.next("the first event")
            // One is at work and the others wait: each relay's share is full, and its socket is not read.
            _ = try await gauge.counts.next("a tick with so many in the queue") { $0 == share * floods }
            honest.inject(good)
            _ = try await gauge.counts.next("a tick with so many in the queue") { $0 == share * floods + 1 }
            gate.ring()
            _ = try await found.next("the event")
            let before = try #require(order.before(good.id))
            #expect(before <= 1 + floods, "the one at work, and one of each flood's")
            for relay in flooding { #expect(relay.counters.eventsSent < flood, "the flood goes on") }
        }
        #expect(gauge.most <= share * floods + 1)
    }
}
