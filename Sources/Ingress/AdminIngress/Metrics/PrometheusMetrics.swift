package import CoreMetrics
import Synchronization

/// A value that is looked up at a scrape, such as a backlog or the process's memory.
package struct MetricSample: Sendable {
    package var name: String
    package var labels: [(String, String)]
    package var value: Double
    /// Whether it only grows.
    package var isTotal: Bool

    /// - Parameter name: static text, as every metric's name is.
    package init(
        _ name: StaticString, labels: [(String, String)] = [], value: Double, isTotal: Bool = false
    ) {
        self.name = "\(name)"
        self.labels = labels
        self.value = value
        self.isTotal = isTotal
    }
}

/// swift-metrics' backend of this relay: series in memory, shown in Prometheus' text format 0.0.4.
///
/// The number of series is bounded. One too many is counted in `sealbell_metrics_dropped_total` and nowhere
/// else, so that a label from a peer, should one ever slip in, cannot fill memory.
package final class PrometheusMetrics: MetricsFactory {
    private struct Series: Hashable {
        let name: String
        /// Written out and escaped.
        let labels: String
    }

    private struct State {
        var kinds: [String: MetricKind] = [:]
        var cells: [Series: any MetricCell] = [:]
        var dropped: Int64 = 0
    }

    /// Lanes × outcomes × reasons of fifty apps stay below.
    package static let seriesLimit = 10_000
    /// Spans of requests and sends, in seconds.
    package static let secondBounds = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30
    ]
    /// Sizes and counts.
    package static let countBounds: [Double] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 4096, 16384, 65536]

    private let limit: Int
    private let help: [String: String]
    private let state = Mutex(State())
    private let discarded = DiscardedCell()

    /// - Parameter help: of families that ``MetricCatalogue`` does not know: name → one line.
    package init(seriesLimit: Int = PrometheusMetrics.seriesLimit, help: [String: String] = [:]) {
        limit = seriesLimit
        self.help = MetricCatalogue.help.merging(help) { $1 }
    }

    // MARK: MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        cell(label, dimensions, .counter) { CounterCell() } ?? discarded
    }

    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        cell(label, dimensions, .counter) { FloatCounterCell() } ?? discarded
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        cell(label, dimensions, .gauge) { GaugeCell() } ?? discarded
    }

    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else { return cell(label, dimensions, .gauge) { GaugeCell() } ?? discarded }
        return cell(label, dimensions, .histogram) { HistogramCell(bounds: Self.countBounds) } ?? discarded
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        cell(label, dimensions, .histogram) {
            HistogramCell(bounds: MetricCatalogue.bounds[label] ?? Self.secondBounds)
        } ?? discarded
    }

    // A series outlives the handles that write it; otherwise a scrape would see counters fall.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    // MARK: Text

    /// All series, sorted by name, and the samples of this scrape behind them.
    package func text(_ samples: [MetricSample] = []) -> String {
        let (kinds, cells, dropped) = state.withLock { ($0.kinds, $0.cells, $0.dropped) }
        var text = ""
        var last = ""
        let ordered = cells.sorted { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }
        for (series, cell) in ordered {
            if series.name != last, let kind = kinds[series.name] { text += head(series.name, kind) }
            last = series.name
            cell.write(series.name, series.labels, to: &text)
        }
        var seen = Set(kinds.keys)
        let groups = Dictionary(grouping: samples) { metricName($0.name) }.sorted { $0.key < $1.key }
        for (name, group) in groups where seen.insert(name).inserted {
            let kind: MetricKind = group[0].isTotal ? .counter : .gauge
            text += head(name, kind)
            for sample in group {
                text += seriesLine(name, metricLabels(sample.labels), metricNumber(sample.value))
            }
        }
        text += head("sealbell_metrics_dropped_total", .counter)
        return text + seriesLine("sealbell_metrics_dropped_total", "", String(dropped))
    }

    // MARK: Figures

    /// The sum of a family's counters.
    ///
    /// - Parameter isMeant: of a series' labels, written out: `a="b",c="d"`.
    func total(_ name: String, where isMeant: (String) -> Bool) -> Int64 {
        cells(name, isMeant).reduce(0) { $0 &+ (($1 as? CounterCell)?.value ?? 0) }
    }

    /// A family's histograms, added up.
    func histogram(_ name: String, where isMeant: (String) -> Bool) -> HistogramCounts {
        cells(name, isMeant).reduce(HistogramCounts()) { sum, cell in
            (cell as? HistogramCell).map { sum.with($0.value) } ?? sum
        }
    }

    private func cells(_ name: String, _ isMeant: (String) -> Bool) -> [any MetricCell] {
        let all = state.withLock(\.cells)
        return all.compactMap { $0.key.name == name && isMeant($0.key.labels) ? $0.value : nil }
    }

    /// The lines before a family's first.
    private func head(_ name: String, _ kind: MetricKind) -> String {
        let help = self.help[name].map { "# HELP \(name) \($0)\n" } ?? ""
        return help + "# TYPE \(name) \(kind.rawValue)\n"
    }

    /// The series' cell, made at first use; `nil` where there is no room or the name is of another kind.
    private func cell<Cell: MetricCell>(
        _ label: String, _ dimensions: [(String, String)], _ kind: MetricKind, _ make: () -> Cell
    ) -> Cell? {
        let series = Series(name: metricName(label), labels: metricLabels(dimensions))
        return state.withLock { state -> Cell? in
            if let known = state.cells[series], let cell = known as? Cell { return cell }
            let isFree = state.cells[series] == nil && (state.kinds[series.name] ?? kind) == kind
            guard isFree, state.cells.count < limit else {
                state.dropped += 1
                return nil
            }
            let cell = make()
            state.kinds[series.name] = kind
            state.cells[series] = cell
            return cell
        }
    }
}

/// `[a-zA-Z_:][a-zA-Z0-9_:]*`; every other character becomes `_`.
func metricName(_ text: String) -> String {
    var name = ""
    for scalar in text.unicodeScalars {
        let isLetter =
            ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || scalar == "_" || scalar == ":"
        let isDigit = ("0"..."9").contains(scalar) && !name.isEmpty
        name.unicodeScalars.append(isLetter || isDigit ? scalar : "_")
    }
    return name.isEmpty ? "_" : name
}

/// Sorted by name, values escaped: backslash, quote and line break are all that the format knows to escape.
func metricLabels(_ labels: [(String, String)]) -> String {
    labels.sorted { $0.0 < $1.0 }.map { name, value in
        var escaped = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return "\(metricName(name).replacing(":", with: "_"))=\"\(escaped)\""
    }.joined(separator: ",")
}
