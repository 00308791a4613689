import Delivery
package import PushModel

/// One gap on its way from the store, page by page in the order of timestamps.
package struct GapFetch: Sendable {
    /// Timestamps, Unix nanoseconds.
    package private(set) var range: ClosedRange<Int64>
    /// Of the page before; `nil`: the first of the range.
    package private(set) var cursor: String?
    /// Whether nothing more is asked for.
    package private(set) var isOver = false
    /// All pages came.
    package private(set) var isComplete = false
    private var newest: Int64
    private var pages = 0
    /// Calls in a row that brought nothing.
    private var attempts = 0
    private var retryAfter: Duration?
    private let limits: WakuLimits

    /// - Parameter since: the earliest time at which a message may have been missed.
    /// - Parameter now: the end of the range. Later messages are heard.
    package init(since: UnixTime, now: UnixTime, limits: WakuLimits) {
        self.limits = limits
        let start = max(since, now - limits.gapReach) - WakuLimits.timestampSlack
        let end = max(start, now + WakuLimits.timestampSlack)
        range = Self.nanoseconds(start)...Self.nanoseconds(end)
        newest = range.lowerBound
    }

    /// - Returns: a fault of the page; then nothing of it counts.
    package mutating func took(_ page: NodePage) -> NodeFault? {
        if let next = page.cursor, next == cursor { return .malformed }
        pages += 1
        attempts = 0
        cursor = page.cursor
        if let last = page.newest, range.contains(last) { newest = max(newest, last) }
        isComplete = cursor == nil
        isOver = isComplete || pages >= limits.pages
        return nil
    }

    /// - Returns: whether to report it: only the first in a row.
    package mutating func failed(_ fault: NodeFault) -> Bool {
        attempts += 1
        retryAfter = fault.retryAfter
        // The next attempt may ask another store, which does not know this one's cursor.
        range = newest...range.upperBound
        cursor = nil
        isOver = attempts >= limits.storeAttempts || !(fault.isPassing || fault.isNoStore)
        return attempts == 1
    }

    /// Until the next attempt.
    package func rest(random: UInt64) -> Duration {
        limits.storeBackoff.delay(afterAttempt: max(1, attempts), asked: retryAfter, random: random)
    }

    private static func nanoseconds(_ time: UnixTime) -> Int64 {
        let (product, overflow) = time.milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? (time.milliseconds < 0 ? .min : .max) : product
    }
}
