import PushModel

/// The last deliveries of a simulator, and those who wait for the next ones.
struct DeliveryLog {
    /// How many deliveries one subscriber may be behind; the oldest fall off.
    static let subscriberBuffer = 1024
    /// How many streams there may be: one for each simulated device of a demo, and some more.
    static let subscriberLimit = 10_000

    private(set) var counters = SimulatorCounters()
    private var ring: [Delivery] = []
    private var ringBytes = 0
    private var first = 0
    private let capacity: Int
    private let capacityBytes: Int
    private var seen: IDSet
    private var subscribers: [String: [Int: AsyncStream<Delivery>.Continuation]] = [:]
    private var subscriberCount = 0
    private var nextSubscriber = 0

    /// - Parameters:
    ///   - capacity: deliveries that are kept; 0 for none.
    ///   - bodyBytes: bytes of their bodies that are kept, all together.
    ///   - doubles: ids that are remembered (see ``IDSet``).
    init(capacity: Int, bodyBytes: Int, doubles: Int) {
        self.capacity = max(0, capacity)
        capacityBytes = bodyBytes
        seen = IDSet(capacity: doubles)
    }

    mutating func countReceived() { counters.received += 1 }
    mutating func countRefused(_ reason: String) { counters.byReason[reason, default: 0] += 1 }
    mutating func countToken() { counters.tokensIssued += 1 }
    mutating func countUnheard() { counters.unheard += 1 }

    /// Counts an acceptance; true when the id was accepted before.
    mutating func countAccepted(_ id: PushID?) -> Bool {
        counters.accepted += 1
        guard let id, !seen.insert(id.value) else { return false }
        counters.doubles += 1
        return true
    }

    /// Whether anybody will ever look at a delivery to this token.
    func wants(_ token: String) -> Bool {
        capacity > 0 || (subscriberCount > 0 && (subscribers[token] != nil || subscribers[""] != nil))
    }

    /// Keeps a delivery; the oldest make room.
    mutating func record(_ delivery: Delivery) {
        guard capacity > 0 else { return }
        ring.append(delivery)
        ringBytes += delivery.body.count
        while ring.count - first > capacity || (ringBytes > capacityBytes && ring.count - first > 1) {
            ringBytes -= ring[first].body.count
            ring[first].body = []
            first += 1
        }
        // Dropped entries are removed in batches, so that each removal costs next to nothing.
        if first > capacity {
            ring.removeFirst(first)
            first = 0
        }
    }

    /// Kept deliveries with a number above `number`, the oldest first.
    func deliveries(after number: Int, limit: Int) -> [Delivery] {
        let kept = ring[first...]
        let start = kept.firstIndex { $0.number > number } ?? kept.endIndex
        return Array(kept[start...].prefix(max(0, limit)))
    }

    func listeners(for token: String) -> [AsyncStream<Delivery>.Continuation] {
        guard subscriberCount > 0 else { return [] }
        return Array((subscribers[token] ?? [:]).values) + Array((subscribers[""] ?? [:]).values)
    }

    /// A stream's place; `nil` if there are too many.
    mutating func subscribe(_ token: String, _ continuation: AsyncStream<Delivery>.Continuation) -> Int? {
        guard subscriberCount < Self.subscriberLimit else { return nil }
        nextSubscriber += 1
        subscriberCount += 1
        subscribers[token, default: [:]][nextSubscriber] = continuation
        return nextSubscriber
    }

    mutating func unsubscribe(_ token: String, _ place: Int) {
        guard subscribers[token]?.removeValue(forKey: place) != nil else { return }
        subscriberCount -= 1
        if subscribers[token]?.isEmpty == true { subscribers.removeValue(forKey: token) }
    }

    /// Returns and forgets all streams, for the end of a simulator.
    mutating func takeAll() -> [AsyncStream<Delivery>.Continuation] {
        defer {
            subscribers.removeAll()
            subscriberCount = 0
        }
        return subscribers.values.flatMap(\.values)
    }
}

/// A type that keeps a delivery log behind its lock.
protocol DeliveryKeeper: AnyObject, Sendable {
    func log<Value: Sendable>(_ body: (inout DeliveryLog) -> Value) -> Value
}

extension DeliveryKeeper {
    var counters: SimulatorCounters { log { $0.counters } }

    func deliveries(after number: Int, limit: Int) -> [Delivery] {
        log { $0.deliveries(after: number, limit: limit) }
    }

    /// Hands a delivery to those who wait for it; outside the lock, because a reader may answer at once.
    func tell(_ delivery: Delivery, _ listeners: [AsyncStream<Delivery>.Continuation]) {
        for listener in listeners {
            if case .dropped = listener.yield(delivery) { log { $0.countUnheard() } }
        }
    }

    /// Every delivery to `address` from now on; it ends at once if there are too many streams.
    func subscribe(_ address: String) -> AsyncStream<Delivery> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Delivery.self, bufferingPolicy: .bufferingNewest(DeliveryLog.subscriberBuffer))
        guard let place = log({ $0.subscribe(address, continuation) }) else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.log { $0.unsubscribe(address, place) } }
        return stream
    }

    /// Ends all subscriptions.
    func finish() {
        for continuation in log({ $0.takeAll() }) { continuation.finish() }
    }
}
