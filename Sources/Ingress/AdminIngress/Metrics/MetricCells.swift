import CoreMetrics
import Synchronization

/// What a series is, as the text format names it.
enum MetricKind: String, Sendable { case counter, gauge, histogram }

/// One series' value. Updates are one atomic addition or one short lock.
protocol MetricCell: AnyObject, Sendable {
    /// Appends the series' lines, without `# TYPE`. `labels` is `a="b",c="d"` or empty.
    func write(_ name: String, _ labels: String, to text: inout String)
}

final class CounterCell: CounterHandler, MetricCell {
    private let total = Atomic<Int64>(0)

    func increment(by amount: Int64) {
        // A counter never falls; a negative amount is a bug of the caller and is left out.
        if amount > 0 { total.wrappingAdd(amount, ordering: .relaxed) }
    }

    func reset() { total.store(0, ordering: .relaxed) }

    var value: Int64 { total.load(ordering: .relaxed) }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += seriesLine(name, labels, String(total.load(ordering: .relaxed)))
    }
}

final class FloatCounterCell: FloatingPointCounterHandler, MetricCell {
    private let total = Mutex(0.0)

    func increment(by amount: Double) {
        if amount > 0, amount.isFinite { total.withLock { $0 += amount } }
    }

    func reset() { total.withLock { $0 = 0 } }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += seriesLine(name, labels, metricNumber(total.withLock { $0 }))
    }
}

/// A gauge: a meter, or a recorder that does not aggregate.
final class GaugeCell: MeterHandler, RecorderHandler, MetricCell {
    private let level = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { level.withLock { $0 = value } }
    func increment(by amount: Double) { level.withLock { $0 += amount } }
    func decrement(by amount: Double) { level.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }

    func write(_ name: String, _ labels: String, to text: inout String) {
        text += seriesLine(name, labels, metricNumber(level.withLock { $0 }))
    }
}

/// A histogram with fixed buckets: a timer in seconds, or a recorder that aggregates.
final class HistogramCell: TimerHandler, RecorderHandler, MetricCell {
    private struct State {
        var counts: [Int64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    /// - Parameter bounds: upper bounds, ascending, without the infinite one.
    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard value.isFinite else { return }
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock {
            $0.counts[index] += 1
            $0.sum += value
        }
    }

    var value: HistogramCounts { HistogramCounts(bounds: bounds, counts: state.withLock(\.counts)) }

    func write(_ name: String, _ labels: String, to text: inout String) {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        let lead = labels.isEmpty ? "" : labels + ","
        var total: Int64 = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? metricNumber(bounds[index]) : "+Inf"
            text += seriesLine(name + "_bucket", lead + "le=\"\(bound)\"", String(total))
        }
        text += seriesLine(name + "_sum", labels, metricNumber(sum))
        text += seriesLine(name + "_count", labels, String(total))
    }
}

/// Takes what there is no room for.
final class DiscardedCell: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler,
    TimerHandler
{
    func increment(by amount: Int64) {}
    func increment(by amount: Double) {}
    func decrement(by amount: Double) {}
    func reset() {}
    func set(_ value: Int64) {}
    func set(_ value: Double) {}
    func record(_ value: Int64) {}
    func record(_ value: Double) {}
    func recordNanoseconds(_ duration: Int64) {}
}

func seriesLine(_ name: String, _ labels: String, _ value: String) -> String {
    labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
}

/// Whole numbers without a fraction, as most readers expect of counts.
func metricNumber(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
}
