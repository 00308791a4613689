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
        "Another relay's wrap waits for one event of the flood, and the queue stays as short as it is",
        arguments: [1, 50])
    func turns(_ distinct: Int) async throws {
        let rig = try await ListeningRig(relays: 2)
        let (flooding, honest) = (rig.relays[0], rig.relays[1])
        var limits = ListeningRig.limits
        (limits.queuedBytes, limits.leastShare, limits.workers) = (0, 8 * Self.size(rig.wrap()), 1)
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
            try await rig.listening(2)
            flooding.flood((0..<distinct).map { _ in rig.wrap() }, count: flood)
            _ = try await began.next("the first event")
            // One is at work and eight wait: the relay's share is full, and its socket is not read.
            _ = try await gauge.counts.next("a tick with so many in the queue") { $0 == 8 }
            honest.inject(good)
            _ = try await gauge.counts.next("a tick with so many in the queue") { $0 == 9 }
            gate.ring()
            _ = try await found.next("the event")
            let before = try #require(order.before(good.id))
            #expect(before <= 2, "the one at work, and one of the flood's")
            #expect(flooding.counters.eventsSent < flood, "the flood goes on")
        }
        #expect(gauge.most <= 9)
    }

    @Test("With each of many relays flooding, a wrap waits for one event of each")
    func several() async throws {
        let count = 5
        let rig = try await ListeningRig(relays: count + 1)
        var limits = ListeningRig.limits
        (limits.queuedBytes, limits.leastShare, limits.workers) = (0, 4 * Self.size(rig.wrap()), 1)
        let gauge = QueueGauge()
        let order = Order()
        let (found, finding) = AsyncStream.makeStream(of: Void.self)
        let gate = Bell()
        let good = rig.wrap()
        let ingress = try rig.ingress(try rig.plan(), limits: limits, metrics: gauge) { event, _, _ in
            if order.add(event.id) == 1 { await gate.waitThroughCancellation() }
            if event.id == good.id { finding.yield() }
        }
        try await rig.run(ingress) {
            try await rig.listening(count + 1)
            for relay in rig.relays.prefix(count) { relay.flood(rig.wrap(), count: 1_000_000) }
            _ = try await gauge.counts.next("a tick with so many in the queue") { $0 == 4 * count }
            rig.relays[count].inject(good)
            _ = try await gauge.counts.next("a tick with so many in the queue") { $0 == 4 * count + 1 }
            gate.ring()
            _ = try await found.next("the event")
            let before = try #require(order.before(good.id))
            #expect(before <= 1 + count)
        }
        #expect(gauge.most <= 4 * count + 1)
    }
}
