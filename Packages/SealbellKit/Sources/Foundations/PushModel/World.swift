import Synchronization

/// Time and randomness, passed in. Wall time names moments that outlive the process; the monotonic clock
/// counts spans and keeps counting while the machine sleeps.
package struct World: Sendable {
    /// Wall clock.
    package var now: @Sendable () -> UnixTime
    /// Monotonic clock that counts suspension (`CLOCK_BOOTTIME` on Linux).
    package var instant: @Sendable () -> ContinuousClock.Instant
    /// Sleeps until the instant; throws `CancellationError` when the task is cancelled first.
    package var sleep: @Sendable (_ until: ContinuousClock.Instant) async throws -> Void
    /// 64 random bits from the system's generator (or from a seed in a test).
    package var random: @Sendable () -> UInt64

    package init(
        now: @escaping @Sendable () -> UnixTime,
        instant: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (ContinuousClock.Instant) async throws -> Void,
        random: @escaping @Sendable () -> UInt64
    ) {
        self.now = now
        self.instant = instant
        self.sleep = sleep
        self.random = random
    }

    /// `count` random bytes.
    package func randomBytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(count + 7)
        while bytes.count < count {
            withUnsafeBytes(of: random()) { bytes.append(contentsOf: $0) }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// A uniform number in `0..<bound`; `bound` must be positive.
    package func random(below bound: Int64) -> Int64 {
        Int64(random().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// What `work` finds, or `nil` when it has found nothing by then. Whichever ends first cancels the other,
    /// which is awaited.
    package func untilEnd<Found: Sendable>(
        _ end: ContinuousClock.Instant, _ work: @escaping @Sendable () async -> Found
    ) async -> Found? {
        await withTaskGroup(of: Found?.self) { group in
            group.addTask { await work() }
            group.addTask {
                // Ends early only when the result has come, or the whole was cancelled.
                try? await sleep(end)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }
}
