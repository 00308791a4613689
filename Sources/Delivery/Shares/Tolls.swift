package import PushModel
import Synchronization

/// What callers without an origin of their own have used of an instance's allowances. It outlives a reload;
/// otherwise everybody would start from zero.
package final class Tolls: Sendable {
    /// As many as roles have kinds of work: a handful.
    private let limiters = Mutex<[Allowance: RateLimiter<Payer>]>([:])
    private let world: World
    private let relays: @Sendable () -> Int

    /// - Parameter relays: the number of processes among which each allowance is divided.
    package init(world: World, relays: @escaping @Sendable () -> Int = { 1 }) {
        self.world = world
        self.relays = relays
    }

    /// Takes its units, all or none.
    ///
    /// - Returns: how long until there are enough units again; `nil`: they were taken.
    package func take(_ toll: Toll) -> Duration? {
        let limiter = limiters.withLock { limiters in
            if let known = limiters[toll.allowance] { return known }
            let fresh = RateLimiter<Payer>(perMinute: toll.allowance.perMinute, world: world, relays: relays)
            limiters[toll.allowance] = fresh
            return fresh
        }
        guard case .refused(let retryAfter) = limiter.take(toll.units, of: toll.payer) else { return nil }
        return retryAfter
    }
}
