/// A moment of wall time: whole milliseconds since 1970-01-01T00:00:00Z.
public struct UnixTime: Sendable, Hashable, Comparable {
    /// Since 1970-01-01T00:00:00Z; negative before.
    public let milliseconds: Int64

    /// - Parameter milliseconds: any, since 1970-01-01T00:00:00Z.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Saturates far outside any calendar instead of trapping: the number may come from a peer.
    public init(seconds: Int64) {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        milliseconds = overflow ? (seconds < 0 ? .min : .max) : product
    }

    /// Whole seconds, rounded down, as the wire wants them.
    public var seconds: Int64 {
        let quotient = milliseconds / 1000
        return milliseconds % 1000 < 0 ? quotient - 1 : quotient
    }

    /// 1970-01-01T00:00:00Z: before anything that happens.
    public static let distantPast = UnixTime(milliseconds: 0)
    /// Behind anything that happens: "never".
    public static let distantFuture = UnixTime(milliseconds: .max)

    /// The earlier one is less.
    public static func < (left: UnixTime, right: UnixTime) -> Bool { left.milliseconds < right.milliseconds }

    /// Saturates where the sum has no room.
    public static func + (time: UnixTime, span: Duration) -> UnixTime {
        let (sum, overflow) = time.milliseconds.addingReportingOverflow(span.wholeMilliseconds)
        return UnixTime(milliseconds: overflow ? (span < .zero ? .min : .max) : sum)
    }

    /// Saturates where the difference has no room.
    public static func - (time: UnixTime, span: Duration) -> UnixTime { time + (.zero - span) }

    /// The span from `earlier` to this moment; negative when this one is earlier.
    public func since(_ earlier: UnixTime) -> Duration {
        let (difference, overflow) = milliseconds.subtractingReportingOverflow(earlier.milliseconds)
        return .milliseconds(overflow ? (milliseconds < 0 ? Int64.min : .max) : difference)
    }
}

extension Duration {
    /// It, doubled so many times; at most `most`.
    package func doubled(_ times: Int, atMost most: Duration) -> Duration {
        min(self * (1 << min(max(0, times), 20)), most)
    }

    /// A random part of it, from nothing to the whole.
    ///
    /// - Parameter random: 64 random bits. The upper 53 are used, as many as fit a fraction.
    package func part(_ random: UInt64) -> Duration {
        self * (Double(random >> 11) / Double(UInt64(1) << 53))
    }

    /// Whole milliseconds, rounded toward zero; saturates.
    public var wholeMilliseconds: Int64 {
        let whole = attoseconds
        let size = whole.magnitude
        // A millisecond is 2^15 × 5^15 attoseconds. Under a week the first part leaves 64 bits, which are
        // divided by multiplication; dividing all 128 bits cost ten times as much, ten times a push.
        if size >> 79 == 0 {
            let count = Int64(UInt64(truncatingIfNeeded: size >> 15) / 30_517_578_125)
            return whole < 0 ? -count : count
        }
        return Int64(clamping: whole / 1_000_000_000_000_000)
    }
}
