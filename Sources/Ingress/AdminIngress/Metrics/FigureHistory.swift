package import PushModel
import Synchronization

/// What happened between two looks at the counters, for the graphs of the dashboard.
package struct FigureSample: Sendable, Hashable {
    /// Spans of a histogram's entries: the middle one, and the one below which 95 of 100 are.
    package struct Spans: Sendable, Hashable {
        package var median: Double
        package var slow: Double

        package init(median: Double, slow: Double) {
            self.median = median
            self.slow = slow
        }
    }

    /// The end of the time that it covers.
    package var at: ContinuousClock.Instant
    /// How long that was: ``FigureHistory/every`` or a little more.
    package var seconds: Double
    /// Answers of push services: acceptances, and all others.
    package var accepted: Int64 = 0
    package var refused: Int64 = 0
    /// From a push's acceptance here to that by its push service, in seconds; `nil`: there was none.
    package var delivery: Spans?
    /// Requests of peers, and those of them that were answered with 5xx.
    package var calls: Int64 = 0
    package var failedCalls: Int64 = 0
    /// From a request's head to its answer, in seconds; `nil`: there was none.
    package var answering: Spans?
    /// Pushes that were owed at the end; `nil`: the store did not say.
    package var owed: Int?
    /// Resident memory at the end; `nil`: the system does not tell.
    package var residentBytes: Int?

    package init(at: ContinuousClock.Instant, seconds: Double) {
        self.at = at
        self.seconds = seconds
    }
}

/// The last hour in samples of half a minute, made from the counters that ``PrometheusMetrics`` has anyway.
///
/// A ring of fixed size: 120 samples of about 150 bytes, together below 20 KiB, whatever the load. It asks no
/// store, and nothing waits for it.
package final class FigureHistory: Sendable {
    /// Short enough for a burst to show, long enough for a quiet relay to have something to count.
    package static let every = Duration.seconds(30)
    /// An hour of these.
    package static let capacity = 120

    private struct Totals {
        var accepted: Int64
        var refused: Int64
        var calls: Int64
        var failedCalls: Int64
        var delivery: HistogramCounts
        var answering: HistogramCounts
    }

    private struct State {
        var samples: [FigureSample] = []
        var last: (at: ContinuousClock.Instant, totals: Totals)?
    }

    private let metrics: PrometheusMetrics
    /// Faces whose requests are no peer's, as labels.
    private let own: Set<String>
    private let state = Mutex(State())

    /// - Parameter own: the admin listeners: who looks at the dashboard is not shown on it as a caller.
    package init(_ metrics: PrometheusMetrics, own: [ConfiguredName]) {
        self.metrics = metrics
        self.own = Set(own.map { "listener=\"\($0.text)\"" })
    }

    /// Takes a sample if the last one is ``every`` old; the first call only begins to count. May be called as
    /// often as one likes.
    ///
    /// - Parameters:
    ///   - owed: by the store's last word.
    ///   - residentBytes: asked for a sample alone.
    package func note(
        at now: ContinuousClock.Instant, owed: Int?, residentBytes: () -> Int? = { nil }
    ) {
        let isDue = state.withLock { $0.last.map { now - $0.at >= Self.every } ?? true }
        guard isDue else { return }
        let (totals, residentBytes) = (totals(), residentBytes())
        state.withLock { state in
            defer { state.last = (now, totals) }
            guard let last = state.last else { return }
            let span = max(now - last.at, .milliseconds(1)) / Duration.seconds(1)
            var sample = FigureSample(at: now, seconds: span)
            sample.accepted = totals.accepted - last.totals.accepted
            sample.refused = totals.refused - last.totals.refused
            sample.calls = totals.calls - last.totals.calls
            sample.failedCalls = totals.failedCalls - last.totals.failedCalls
            sample.delivery = totals.delivery.since(last.totals.delivery).spans
            sample.answering = totals.answering.since(last.totals.answering).spans
            (sample.owed, sample.residentBytes) = (owed, residentBytes)
            // A machine that has slept has nothing of the last hour.
            state.samples.removeAll { now - $0.at >= Self.every * Self.capacity }
            if state.samples.count == Self.capacity { state.samples.removeFirst() }
            state.samples.append(sample)
        }
    }

    /// Oldest first.
    package var samples: [FigureSample] { state.withLock(\.samples) }

    private func totals() -> Totals {
        let accepted = metrics.total("sealbell_push_answers_total") { $0.contains("outcome=\"accepted\"") }
        let answers = metrics.total("sealbell_push_answers_total") { _ in true }
        let isPeers: (String) -> Bool = { labels in !self.own.contains { labels.contains($0) } }
        return Totals(
            accepted: accepted, refused: max(0, answers - accepted),
            calls: metrics.total("sealbell_http_requests_total", where: isPeers),
            failedCalls: metrics.total("sealbell_http_requests_total") {
                isPeers($0) && $0.contains("status=\"5xx\"")
            },
            delivery: metrics.histogram("sealbell_push_latency_seconds") { _ in true },
            answering: metrics.histogram("sealbell_http_request_seconds", where: isPeers))
    }
}

/// A histogram's entries by bucket.
struct HistogramCounts: Sendable, Hashable {
    /// Upper bounds, ascending, without the infinite one.
    var bounds: [Double] = []
    /// One more than bounds.
    var counts: [Int64] = []

    /// - Returns: both together; of two with other bounds the first.
    func with(_ other: HistogramCounts) -> HistogramCounts {
        guard !bounds.isEmpty else { return other }
        guard bounds == other.bounds, counts.count == other.counts.count else { return self }
        return HistogramCounts(bounds: bounds, counts: zip(counts, other.counts).map { $0 + $1 })
    }

    /// What was added since.
    func since(_ earlier: HistogramCounts) -> HistogramCounts {
        guard bounds == earlier.bounds, counts.count == earlier.counts.count else { return self }
        return HistogramCounts(bounds: bounds, counts: zip(counts, earlier.counts).map { max(0, $0 - $1) })
    }

    var spans: FigureSample.Spans? {
        quantile(0.5).flatMap { median in
            quantile(0.95).map { FigureSample.Spans(median: median, slow: $0) }
        }
    }

    /// As Prometheus' `histogram_quantile`: entries stand evenly in their bucket, and those above the last
    /// bound count as it.
    func quantile(_ share: Double) -> Double? {
        let total = counts.reduce(0, +)
        guard total > 0, let highest = bounds.last else { return nil }
        let rank = share * Double(total)
        var below: Double = 0
        for (index, count) in counts.enumerated() where count > 0 {
            guard index < bounds.count else { break }
            if below + Double(count) >= rank {
                let low = index == 0 ? 0 : bounds[index - 1]
                return low + (bounds[index] - low) * (rank - below) / Double(count)
            }
            below += Double(count)
        }
        return highest
    }
}
