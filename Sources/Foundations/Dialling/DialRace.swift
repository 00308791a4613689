/// When the next address of a name is tried: events in, starts out, no socket and no clock of its own
/// (RFC 8305 §5).
///
/// An attempt that fails makes the next begin at once. One that is still under way lets the next begin beside
/// it: soon while it has no connection, later once it has one and is silent. An attempt that has received
/// something stops the start of others until it fails. The first attempt that is ready wins; the dial fails
/// only when the last address has failed.
package struct DialRace: Sendable {
    private enum Phase: Sendable, Hashable {
        case connecting
        /// It has a connection, and has received nothing.
        case taken(since: ContinuousClock.Instant)
        case heard
        case failed
    }

    private let count: Int
    private let attemptDelay: Duration
    private let silence: Duration
    /// Of the attempts that have begun, in order.
    private var phases: [Phase] = []
    private var lastStart: ContinuousClock.Instant
    /// There is nothing to wait for: it is the first attempt, or the last one has failed.
    private var isHurried = true

    /// - Parameters:
    ///   - count: of the addresses.
    ///   - span: the time for all attempts together; it is divided, so that the last address has its turn
    ///     too.
    package init(count: Int, limits: DialLimits, within span: Duration, at now: ContinuousClock.Instant) {
        self.count = count
        let share = span / (count + 1)
        attemptDelay = min(limits.attemptDelay, share)
        silence = min(limits.silence, share)
        lastStart = now
    }

    /// Whether every address has had its turn and failed.
    package var isLost: Bool { phases.count == count && phases.allSatisfy { $0 == .failed } }

    /// Whether an address took a connection and has said nothing so far, or said too little.
    package var hasTaken: Bool { phases.contains { $0 != .connecting && $0 != .failed } }

    /// When the next attempt begins if nothing happens before; `nil`: none does.
    package var nextStart: ContinuousClock.Instant? {
        guard phases.count < count, !phases.contains(.heard) else { return nil }
        return phases.reduce(isHurried ? lastStart : lastStart + attemptDelay) { moment, phase in
            if case .taken(let since) = phase { max(moment, since + silence) } else { moment }
        }
    }

    /// Begins the attempt that is due.
    ///
    /// - Returns: the address's number; `nil` when none is due.
    package mutating func start(at now: ContinuousClock.Instant) -> Int? {
        guard let nextStart, nextStart <= now else { return nil }
        phases.append(.connecting)
        (lastStart, isHurried) = (now, false)
        return phases.count - 1
    }

    /// The attempt has a connection.
    package mutating func take(_ attempt: Int, at now: ContinuousClock.Instant) {
        if phases[attempt] == .connecting { phases[attempt] = .taken(since: now) }
    }

    /// The other side has shown that it is alive, so that no other address would do better.
    package mutating func hear(_ attempt: Int) {
        if phases[attempt] != .failed { phases[attempt] = .heard }
    }

    package mutating func fail(_ attempt: Int) {
        phases[attempt] = .failed
        isHurried = true
    }
}
