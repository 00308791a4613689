import CoreMetrics
import PushModel
import PushTesting
import Testing

@testable import AdminIngress

@Suite("The last hour in samples")
struct FigureHistoryTests {
    private let metrics = PrometheusMetrics()
    private let start = ContinuousClock.now

    private func answers(_ outcome: String, _ count: Int) {
        Counter(
            label: "sealbell_push_answers_total",
            dimensions: [("lane", "a"), ("outcome", outcome), ("reason", "x")], factory: metrics
        ).increment(by: count)
    }

    private func calls(_ listener: String, _ status: String, _ count: Int) {
        let labels = [("listener", listener), ("face", "f")]
        Counter(
            label: "sealbell_http_requests_total", dimensions: labels + [("status", status)], factory: metrics
        ).increment(by: count)
        let timer = Timer(label: "sealbell_http_request_seconds", dimensions: labels, factory: metrics)
        for _ in 0..<count { timer.recordMilliseconds(40) }
    }

    @Test("A sample counts what came since the one before; the admin listener's own calls are left out")
    func samples() throws {
        let history = FigureHistory(metrics, own: [configured("admin")])
        answers("accepted", 100)
        history.note(at: start, owed: 5)
        #expect(history.samples.isEmpty, "what was counted before is no rate")
        answers("accepted", 7)
        answers("retry", 2)
        answers("rejected", 1)
        calls("public", "2xx", 4)
        calls("public", "5xx", 1)
        calls("admin", "2xx", 50)
        let latency = Timer(
            label: "sealbell_push_latency_seconds", dimensions: [("lane", "a"), ("class", "urgent")],
            factory: metrics)
        for _ in 0..<9 { latency.recordMilliseconds(30) }
        latency.recordSeconds(2)
        history.note(at: start + .seconds(29), owed: 6)
        #expect(history.samples.isEmpty, "too early")
        history.note(at: start + .seconds(31), owed: 7, residentBytes: { 1 << 20 })
        let sample = try #require(history.samples.first)
        #expect(sample.accepted == 7 && sample.refused == 3 && sample.seconds == 31)
        #expect(sample.calls == 5 && sample.failedCalls == 1)
        #expect(sample.owed == 7 && sample.residentBytes == 1 << 20)
        let delivery = try #require(sample.delivery)
        #expect((0.025...0.05).contains(delivery.median) && (1...2.5).contains(delivery.slow))
        #expect((0.025...0.05).contains(try #require(sample.answering).slow))
        // Nothing happens: counts are nothing, and spans are unknown.
        history.note(at: start + .seconds(61), owed: nil)
        let quiet = try #require(history.samples.last)
        #expect(quiet.accepted == 0 && quiet.calls == 0 && quiet.delivery == nil && quiet.answering == nil)
        #expect(quiet.owed == nil)
    }

    @Test("An hour is kept, however long it runs, and each sample's memory is bounded")
    func bounded() {
        let history = FigureHistory(metrics, own: [])
        for number in 0...1_000 {
            answers("accepted", 1)
            history.note(at: start + .seconds(30 * number), owed: number)
        }
        let samples = history.samples
        #expect(samples.count == FigureHistory.capacity)
        #expect(samples.last?.owed == 1_000 && samples.first?.owed == 881)
        #expect(samples.allSatisfy { $0.accepted == 1 })
        #expect(MemoryLayout<FigureSample>.stride <= 200)
        history.note(at: start + .seconds(30 * 1_000 + 28_800), owed: 7)
        #expect(history.samples.map(\.owed) == [7], "the machine has slept meanwhile")
    }

    @Test("Quantiles stand within their bucket, at its bound above the last one, and nowhere without entries")
    func quantiles() {
        func counts(_ counts: [Int64]) -> HistogramCounts {
            HistogramCounts(bounds: [1, 2, 4], counts: counts)
        }
        #expect(counts([0, 0, 0, 0]).quantile(0.5) == nil && HistogramCounts().spans == nil)
        #expect(counts([10, 0, 0, 0]).quantile(0.5) == 0.5)
        #expect((3.79...3.81).contains(counts([5, 0, 5, 0]).quantile(0.95) ?? 0))
        #expect(counts([0, 0, 0, 3]).quantile(0.5) == 4)
        #expect(counts([1, 1, 1, 1]).since(counts([1, 0, 1, 0])) == counts([0, 1, 0, 1]))
    }
}
