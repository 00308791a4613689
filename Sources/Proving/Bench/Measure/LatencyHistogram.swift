/// Latencies as counts in buckets; a bucket is at most 1/64 of its value wide. 20 KB, whatever is recorded.
package struct LatencyHistogram: Sendable {
    /// Whole microseconds below 64, then 64 buckets for each power of two, up to about 12 days.
    private var counts = [Int](repeating: 0, count: 64 * 36)
    package private(set) var total = 0
    private var maximumNanoseconds: Int64 = 0

    package init() {}

    package mutating func record(nanoseconds: Int64) {
        counts[Self.bucket(max(0, nanoseconds) / 1000)] += 1
        total += 1
        maximumNanoseconds = max(maximumNanoseconds, nanoseconds)
    }

    /// Takes in what another one recorded.
    package mutating func add(_ other: LatencyHistogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        total += other.total
        maximumNanoseconds = max(maximumNanoseconds, other.maximumNanoseconds)
    }

    package var maximum: Duration { .nanoseconds(maximumNanoseconds) }

    /// The upper end of the bucket below which this share of the latencies lies; zero when there are none.
    package func quantile(_ share: Double) -> Duration {
        let wanted = Int((Double(total) * share).rounded(.up))
        var seen = 0
        for (index, count) in counts.enumerated() where count > 0 {
            seen += count
            if seen >= wanted { return min(.microseconds(Self.upperEnd(index)), maximum) }
        }
        return maximum
    }

    private static func bucket(_ microseconds: Int64) -> Int {
        guard microseconds >= 64 else { return Int(microseconds) }
        let power = 63 - microseconds.leadingZeroBitCount
        let index = (power - 5) * 64 + Int(microseconds >> Int64(power - 6)) & 63
        return min(index, 64 * 36 - 1)
    }

    private static func upperEnd(_ index: Int) -> Int64 {
        guard index >= 64 else { return Int64(index) + 1 }
        let power = index / 64 + 5
        return Int64(64 + index % 64 + 1) << Int64(power - 6)
    }
}

extension Duration {
    /// Seconds as a number for ratios and tables; never for comparing moments.
    package var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }
    package var inMilliseconds: Double { inSeconds * 1000 }
    /// Whole nanoseconds; for spans of less than 292 years.
    var inNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
