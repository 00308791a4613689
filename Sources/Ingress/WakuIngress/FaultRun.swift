/// Faults of one kind in a row, for an alert when there are enough of them over enough time.
///
/// One success ends it. Without one it ends after a while, because the state is then unknown.
package struct FaultRun: Sendable {
    private let limits: FaultRunLimits
    private var count = 0
    private var began: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?

    package init(_ limits: FaultRunLimits) { self.limits = limits }

    package mutating func failed(at now: ContinuousClock.Instant) {
        if let last, now - last >= limits.toldFor { succeeded() }
        // A counter shows more.
        count = min(count + 1, limits.most)
        began = began ?? now
        last = now
    }

    package mutating func succeeded() { (count, began, last) = (0, nil, nil) }

    /// How many there were; 0: too few to report.
    package func told(at now: ContinuousClock.Instant) -> Int {
        guard count >= limits.least, let began, let last, last - began >= limits.after,
            now - last < limits.toldFor
        else { return 0 }
        return count
    }
}

/// When an operator is told of faults in a row.
package struct FaultRunLimits: Sendable, Hashable {
    /// One or two may have a momentary cause, such as a restart of the node.
    package var least = 3
    /// From the first to the last: longer than a restart.
    package var after = Duration.seconds(60)
    /// How long the last fault is reported if nothing more is tried: as long as the interval of reminders.
    package var toldFor = Duration.seconds(3_600)
    /// Counting beyond says nothing new.
    package var most = 1_000_000

    package init() {}
}
