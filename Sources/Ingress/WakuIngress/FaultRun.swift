/// Faults of one kind in a row, for an operator to be told of: of enough of them, over long enough.
///
/// One success ends it. Without one it ends by itself, since nobody knows any more what holds.
package struct FaultRun: Sendable {
    private let limits: FaultRunLimits
    private var count = 0
    private var began: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?

    package init(_ limits: FaultRunLimits) { self.limits = limits }

    package mutating func failed(at now: ContinuousClock.Instant) {
        if let last, now - last >= limits.toldFor { succeeded() }
        // More is said by a counter.
        count = min(count + 1, limits.most)
        began = began ?? now
        last = now
    }

    package mutating func succeeded() { (count, began, last) = (0, nil, nil) }

    /// How many there were; 0: too few to tell of.
    package func told(at now: ContinuousClock.Instant) -> Int {
        guard count >= limits.least, let began, let last, last - began >= limits.after,
            now - last < limits.toldFor
        else { return 0 }
        return count
    }
}

/// When an operator is told of faults in a row.
package struct FaultRunLimits: Sendable, Hashable {
    /// One or two may be one moment's, such as a restart of who is asked.
    package var least = 3
    /// From the first to the last: a restart takes less.
    package var after = Duration.seconds(60)
    /// How long the last one is told of, if nothing is tried any more: as long as what lasts is repeated.
    package var toldFor = Duration.seconds(3_600)
    /// Counting beyond says nothing new.
    package var most = 1_000_000

    package init() {}
}
