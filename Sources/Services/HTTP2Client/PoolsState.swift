/// Which authorities have a pool, and who may send: events in, actions out, no socket and no clock of its
/// own.
///
/// As many authorities have a pool as requests may be under way. So if all places are taken and one more
/// request comes, one authority has no request under way and can go.
struct PoolsState<Pool: Sendable, Waiter: Sendable>: Sendable {
    private struct Entry: Sendable {
        let pool: Pool
        var underWay = 0
        var usedAt: ContinuousClock.Instant
    }

    private let authorities: Int
    private let idleAfter: Duration
    private var entries: [String: Entry] = [:]
    /// Requests that may still begin.
    private var free: Int
    private var waiting: [(id: UInt64, waiter: Waiter)] = []
    private var nextWaiter: UInt64 = 1
    private(set) var isStopping = false

    init(authorities: Int, idleAfter: Duration) {
        self.authorities = authorities
        self.idleAfter = idleAfter
        free = authorities
    }

    var pools: [Pool] { entries.values.map(\.pool) }
    var waitingCount: Int { waiting.count }

    // MARK: requests

    /// Whether a request may begin now.
    mutating func take() -> Bool {
        guard free > 0, !isStopping else { return false }
        free -= 1
        return true
    }

    /// First come, first served. Bounded by the lanes' loops: each waits for one.
    mutating func wait(_ waiter: Waiter) -> UInt64 {
        defer { nextWaiter += 1 }
        waiting.append((nextWaiter, waiter))
        return nextWaiter
    }

    /// Takes a caller out of the queue; `nil` when it has been served.
    mutating func cancel(_ id: UInt64) -> Waiter? {
        waiting.firstIndex { $0.id == id }.map { waiting.remove(at: $0).waiter }
    }

    /// A request has ended, or did not begin.
    ///
    /// - Returns: the waiter whose request may begin instead.
    mutating func giveBack() -> Waiter? {
        guard waiting.isEmpty else { return waiting.removeFirst().waiter }
        free += 1
        return nil
    }

    // MARK: pools

    /// The pool of an authority, which has a request under way from now on; `nil`: nothing more is sent.
    ///
    /// - Returns: the pool, whether it was made, and the one that has to go for it.
    mutating func pool<Fault: Error>(
        of authority: String, at now: ContinuousClock.Instant, make: () throws(Fault) -> Pool
    ) throws(Fault) -> (pool: Pool, isNew: Bool, goes: Pool?)? {
        guard !isStopping else { return nil }
        if let pool = entries[authority]?.pool {
            entries[authority]?.underWay += 1
            return (pool, false, nil)
        }
        let pool = try make()
        let goes = entries.count < authorities ? nil : removeOldest()
        entries[authority] = Entry(pool: pool, underWay: 1, usedAt: now)
        return (pool, true, goes)
    }

    /// A request to that authority has ended.
    mutating func ended(_ authority: String, at now: ContinuousClock.Instant) {
        entries[authority]?.underWay -= 1
        entries[authority]?.usedAt = now
    }

    /// Takes out pools that were not used for a while.
    mutating func removeIdle(at now: ContinuousClock.Instant) -> [Pool] {
        let gone = entries.filter { $0.value.underWay == 0 && now - $0.value.usedAt >= idleAfter }
        for authority in gone.keys { entries[authority] = nil }
        return gone.values.map(\.pool)
    }

    /// Nothing more is sent.
    mutating func stop() -> [Waiter] {
        isStopping = true
        defer { waiting = [] }
        return waiting.map(\.waiter)
    }

    /// Linear in the authorities: what follows is a handshake.
    private mutating func removeOldest() -> Pool? {
        let idle = entries.filter { $0.value.underWay == 0 }
        guard let oldest = idle.min(by: { $0.value.usedAt < $1.value.usedAt }) else { return nil }
        return entries.removeValue(forKey: oldest.key)?.pool
    }
}
