import Delivery
import PushModel

/// How soon one relay is dialled, or asked, again.
///
/// A relay that restarts is dialled about once a second, so that we hear its next events; one that stays
/// away, or accepts connections and drops them, is dialled less and less often.
struct RelayPace: Sendable {
    private let limits: NostrLimits
    private let random: @Sendable () -> UInt64
    /// Of connecting and of staying connected, in a row.
    private var failures = 0
    /// Subscriptions that this connection's relay has closed.
    private var refusals = 0
    /// Subscriptions that were refused for good, in a row, over all connections.
    private var finalRefusals = 0
    /// Since when every dial has failed; `nil`: the last did not.
    private var unreachableSince: ContinuousClock.Instant?

    init(_ limits: NostrLimits, _ random: @escaping @Sendable () -> UInt64) {
        self.limits = limits
        self.random = random
    }

    mutating func connected() {
        unreachableSince = nil
        refusals = 0
    }

    /// - Parameter listenedFor: how long the subscription was in force; `nil`: it never was.
    mutating func afterEnd(listenedFor span: Duration?) -> Duration {
        if let span, span >= limits.health { failures = 0 }
        return span.map { $0 >= limits.steady } ?? false ? eager : later()
    }

    mutating func afterFailedDial(at now: ContinuousClock.Instant) -> Duration {
        let since = unreachableSince ?? now
        unreachableSince = since
        return now - since < limits.eager ? eager : later()
    }

    mutating func afterRefusal() -> Duration {
        refusals += 1
        return wait(refusals)
    }

    mutating func afterFinalRefusal() -> Duration {
        finalRefusals += 1
        return limits.firstRefusalRest.doubled(finalRefusals - 1, atMost: limits.refusalRest)
    }

    /// The relay has granted the subscription.
    mutating func granted() { finalRefusals = 0 }

    private var eager: Duration { limits.eagerRedial / 2 + (limits.eagerRedial / 2).part(random()) }

    private mutating func later() -> Duration {
        failures += 1
        return wait(failures)
    }

    private func wait(_ attempt: Int) -> Duration {
        limits.backoff.delay(afterAttempt: attempt, asked: nil, random: random())
    }
}
