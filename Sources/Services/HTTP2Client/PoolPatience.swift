import PushModel

/// How long a request may take to be answered: the service's own deadline, and more once it was seen to
/// answer late (decision 0077). A value.
package struct PoolPatience: Sendable {
    /// The time that is now allowed.
    package struct Allowance: Sendable {
        package var span: Duration
        /// No request is waited for longer than this, whatever its own deadline.
        package var until: ContinuousClock.Instant?
    }

    private let base: Duration
    private let longest: Duration
    private let halfLife: Duration
    private var extra = Duration.zero
    private var learnedAt: ContinuousClock.Instant?
    private var end: ContinuousClock.Instant?

    package init(options: HTTP2Options) {
        base = options.deadline
        longest = max(options.deadline, options.longestDeadline)
        halfLife = options.patienceHalves
    }

    /// An answer that took longer than this may change the deadline.
    package var closeCall: Duration { base * 2 / 3 }

    package func allowance(at now: ContinuousClock.Instant) -> Allowance {
        Allowance(span: base + extra(at: now), until: end)
    }

    /// An answer came, in time or late: the next one may take half as long again.
    package mutating func answered(after span: Duration, at now: ContinuousClock.Instant) {
        let wanted = min(span + span / 2, longest)
        guard wanted > base + extra(at: now) else { return }
        (extra, learnedAt) = (wanted - base, now)
    }

    /// Nothing is waited for beyond this moment.
    package mutating func end(at moment: ContinuousClock.Instant) { end = min(end ?? moment, moment) }

    /// Halves with each half-life that passes without an answer which needs it; under a second it is nothing.
    private func extra(at now: ContinuousClock.Instant) -> Duration {
        guard let learnedAt else { return .zero }
        let lives = Int64(clamping: (now - learnedAt).wholeMilliseconds / max(1, halfLife.wholeMilliseconds))
        let left = extra / (1 << min(max(0, lives), 16))
        return left < .seconds(1) ? .zero : left
    }
}
