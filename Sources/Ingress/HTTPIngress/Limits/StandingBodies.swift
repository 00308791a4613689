import PushModel

/// Bodies that are arriving and use more memory than most requests, and since when each is stalled.
struct StandingBodies {
    typealias ID = UInt64

    struct Body {
        let client: ClientKey
        /// Whether its sender has shown a credential that was good lately.
        let isProven: Bool
        /// Bytes that have room.
        var received: Int
        /// When ``IngressLimits/stallBytes`` had come since the mark before, and how many it were then.
        var markedAt: ContinuousClock.Instant
        var markedBytes: Int
        /// Ends the request, on its own loop.
        let cut: @Sendable () -> Void
    }

    /// One holds 16 KiB at least, so a listener's bytes bound their number: 4,096.
    private var bodies: [ID: Body] = [:]
    private var last: ID = 0

    mutating func add(_ body: Body) -> ID {
        last &+= 1
        bodies[last] = body
        return last
    }

    mutating func grow(_ id: ID, by count: Int, now: ContinuousClock.Instant) {
        guard var body = bodies[id] else { return }
        body.received += count
        if body.received - body.markedBytes >= IngressLimits.stallBytes {
            body.markedBytes = body.received
            body.markedAt = now
        }
        bodies[id] = body
    }

    func contains(_ id: ID) -> Bool { bodies[id] != nil }

    /// - Returns: `nil`: it was already dropped.
    @discardableResult
    mutating func remove(_ id: ID) -> Body? { bodies.removeValue(forKey: id) }

    /// Takes out the one that has been stalled longest.
    ///
    /// - Parameter isLarge: only a body that is more than small makes the room that is wanted.
    mutating func takeStalled(
        for span: Duration, but asking: ID?, isLarge: Bool, now: ContinuousClock.Instant
    ) -> Body? {
        let stalled = bodies.filter { id, body in
            id != asking && !body.isProven && now - body.markedAt >= span
                && (!isLarge || body.received > IngressLimits.smallBodyBytes)
        }
        // Of those that stalled at the same moment, the one that began first.
        let oldest = stalled.min { ($0.value.markedAt, $0.key) < ($1.value.markedAt, $1.key) }
        guard let oldest else { return nil }
        return bodies.removeValue(forKey: oldest.key)
    }
}
