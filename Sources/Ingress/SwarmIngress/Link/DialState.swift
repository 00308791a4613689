import PushModel

/// When one peer is dialled, and whether it is connected.
struct DialState: Sendable {
    enum Phase: Sendable, Hashable {
        /// Not to be dialled, because it falls to another process.
        case off
        case resting(until: ContinuousClock.Instant)
        /// Waits for one of the places.
        case waiting(since: ContinuousClock.Instant)
        /// Keys are being exchanged.
        case dialling(until: ContinuousClock.Instant)
        /// We have greeted, and are not greeted yet.
        case greeting(until: ContinuousClock.Instant)
        case connected(since: ContinuousClock.Instant)
    }

    private(set) var phase = Phase.off
    /// Attempts and short connections in a row.
    private var failures = 0

    var isConnected: Bool { if case .connected = phase { true } else { false } }
    /// Whether it takes one of the places of those that are being dialled.
    var isTrying: Bool {
        switch phase {
        case .dialling, .greeting: true
        case .off, .resting, .waiting, .connected: false
        }
    }
    /// Whether there is a socket.
    var isOpen: Bool { isTrying || isConnected }

    mutating func wait(at now: ContinuousClock.Instant) { phase = .waiting(since: now) }
    mutating func turnOff() { phase = .off }
    mutating func dial(until end: ContinuousClock.Instant) { phase = .dialling(until: end) }

    /// - Returns: whether that was awaited.
    mutating func ready(until end: ContinuousClock.Instant) -> Bool {
        guard case .dialling = phase else { return false }
        phase = .greeting(until: end)
        return true
    }

    /// - Returns: whether that was awaited.
    mutating func greeted(at now: ContinuousClock.Instant) -> Bool {
        guard case .greeting = phase else { return false }
        phase = .connected(since: now)
        return true
    }

    /// The connection, or the attempt to make one, has ended.
    ///
    /// - Parameter ladder: the pauses after connections that did not last, in order; the last one repeats.
    mutating func ended(
        at now: ContinuousClock.Instant, ladder: [Duration], limits: SwarmLimits, random: () -> UInt64
    ) {
        if case .connected(let since) = phase, now - since >= limits.steady {
            failures = 0
            phase = .resting(until: now + limits.eagerRedial / 2 + (limits.eagerRedial / 2).part(random()))
            return
        }
        let rest = ladder[min(failures, ladder.count - 1)]
        failures += 1
        // Nodes that were lost together must not come back at the same moment.
        phase = .resting(until: now + rest + (rest / 4).part(random()))
    }

    /// Whether its time has come: to wait for a place, or to be given up.
    func due(at now: ContinuousClock.Instant) -> Due? {
        switch phase {
        case .resting(let end): end <= now ? .rested : nil
        case .dialling(let end), .greeting(let end): end <= now ? .late : nil
        case .off, .waiting, .connected: nil
        }
    }

    enum Due { case rested, late }
}
