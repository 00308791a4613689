import Synchronization

/// A client, for rate limits only: a number that depends on its address and on this process's random key.
///
/// It is not `LogSafe`, and it cannot be turned back into an address. IPv6 counts by /64, which is what one
/// customer is given.
package struct ClientKey: Sendable, Hashable, CustomStringConvertible {
    package let value: UInt64

    package init(_ value: UInt64) { self.value = value }
    package var description: String { "‹client›" }

    /// There is no client behind the call: this process asks, or a peer that forwards what others have sent.
    package static let nobody = ClientKey(0)
}

/// Buckets of one rate limiter: about 40 bytes each, so 4 MiB.
package let rateBuckets = 100_000

package enum RateDecision: Sendable, Hashable {
    case allowed
    /// Nothing was counted; the same call would be allowed after that span.
    case refused(retryAfter: Duration)
}

/// How much is left in a bucket: everything, something, or less than a unit.
package enum BucketLevel: Sendable, Hashable { case full, used, empty }

/// A token bucket for each key, with a bound on the number of buckets.
///
/// A bucket is one number (the virtual time at which it would be full again), so that a million origins cost
/// a few tens of megabytes at most. When all buckets are taken, newcomers share one: an attacker with many
/// addresses slows other newcomers, but not those with a bucket.
package struct RateBuckets<Key: Hashable & Sendable>: Sendable {
    /// Units a minute, also the burst; 0: no limit.
    package let perMinute: Int
    package let capacity: Int
    /// Nanoseconds of virtual time since `start` until which the bucket is not full.
    private var fullAt: [Key: Int64] = [:]
    private var sharedFullAt: Int64 = 0
    private var nextSweep: Int64 = 0
    private let start: ContinuousClock.Instant

    package init(perMinute: Int, capacity: Int, start: ContinuousClock.Instant) {
        self.perMinute = max(0, perMinute)
        self.capacity = max(1, capacity)
        self.start = start
    }

    package var count: Int { fullAt.count }

    /// Takes `units` from the key's bucket, or nothing at all.
    ///
    /// More units than a minute allows are taken as a full bucket's worth, so that a large call can be made
    /// once the bucket is full, never before.
    ///
    /// - Parameter quota: units a minute of this key alone, 0 for no limit; `nil`: as all. When it changes,
    ///   the bucket stays as full as it was, in parts of a minute.
    package mutating func take(
        _ units: Int, of key: Key, now: ContinuousClock.Instant, quota: Int? = nil
    ) -> RateDecision {
        let perMinute = max(0, quota ?? self.perMinute)
        guard perMinute > 0, units > 0 else { return .allowed }
        let minute: Int64 = 60_000_000_000
        let cost = Int64(min(units, perMinute)) * minute / Int64(perMinute)
        let time = nanoseconds(now)
        let held = fullAt[key]
        let isShared = held == nil && !makeRoom(time)
        let before = max(time, isShared ? sharedFullAt : held ?? time)
        let after = before + max(1, cost)
        guard after - time <= minute else { return .refused(retryAfter: .nanoseconds(after - time - minute)) }
        if isShared { sharedFullAt = after } else { fullAt[key] = after }
        return .allowed
    }

    /// Whether a unit could be taken, and how full the key's bucket is; nothing is taken.
    package func level(of key: Key, now: ContinuousClock.Instant) -> BucketLevel {
        guard perMinute > 0, let held = fullAt[key] else { return .full }
        let (time, minute) = (nanoseconds(now), Int64(60_000_000_000))
        if held <= time { return .full }
        return held + max(1, minute / Int64(perMinute)) - time > minute ? .empty : .used
    }

    /// Whether one more bucket fits, after dropping the full ones: a full bucket says nothing.
    ///
    /// The sweep costs one pass over all buckets, so it runs at most once a second.
    private mutating func makeRoom(_ time: Int64) -> Bool {
        if fullAt.count < capacity { return true }
        guard time >= nextSweep else { return false }
        nextSweep = time + 1_000_000_000
        fullAt = fullAt.filter { $0.value > time }
        return fullAt.count < capacity
    }

    private func nanoseconds(_ instant: ContinuousClock.Instant) -> Int64 {
        let parts = start.duration(to: instant).components
        return parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000
    }
}

/// ``RateBuckets`` shared by all requests of an instance.
///
/// With several relays on one store the limit is divided: each allows an equal part of it, rounded up, so
/// that together they allow no more than one would. A balancer must therefore spread a client's requests.
package final class RateLimiter<Key: Hashable & Sendable>: Sendable {
    private let buckets: Mutex<RateBuckets<Key>>
    private let world: World
    private let perMinute: Int
    private let relays: @Sendable () -> Int

    /// - Parameter perMinute: units a minute for each key; 0: none are refused.
    /// - Parameter capacity: buckets at most; about 40 bytes each.
    /// - Parameter relays: the number of processes among which the limit is divided.
    package init(
        perMinute: Int, capacity: Int = rateBuckets, world: World,
        relays: @escaping @Sendable () -> Int = { 1 }
    ) {
        self.world = world
        self.perMinute = perMinute
        self.relays = relays
        buckets = Mutex(RateBuckets(perMinute: perMinute, capacity: capacity, start: world.instant()))
    }

    /// - Parameter quota: units a minute of this key alone; `nil`: as all.
    package func take(_ units: Int, of key: Key, quota: Int? = nil) -> RateDecision {
        let now = world.instant()
        let among = max(1, relays())
        let part = (max(0, quota ?? perMinute) + among - 1) / among
        return buckets.withLock { $0.take(units, of: key, now: now, quota: part) }
    }
}
