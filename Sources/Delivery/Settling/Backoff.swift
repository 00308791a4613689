import PushModel

/// The wait before attempt `n`: a random span up to `base · 2ⁿ`, capped, and never less than what the service
/// asked for (docs/push-services.md §6: full jitter; `Retry-After` is a floor, itself bounded).
package struct Backoff: Sendable {
    package let base: Duration
    package let cap: Duration
    package let floorCap: Duration

    package init(base: Duration, cap: Duration, floorCap: Duration) {
        self.base = base
        self.cap = cap
        self.floorCap = floorCap
    }

    /// - Parameter attempt: attempts made so far, from 1.
    /// - Parameter random: 64 random bits.
    package func delay(afterAttempt attempt: Int, asked floor: Duration?, random: UInt64) -> Duration {
        let doublings = min(max(attempt - 1, 0), 20)
        let ceiling = min(cap.wholeMilliseconds, base.wholeMilliseconds << Int64(doublings))
        let jitter = Int64(random.multipliedFullWidth(by: UInt64(max(ceiling, 1))).high)
        let asked = min(floor ?? .zero, floorCap).wholeMilliseconds
        return .milliseconds(max(asked, 0) + jitter)
    }
}
