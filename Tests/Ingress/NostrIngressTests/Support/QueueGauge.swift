import CoreMetrics
import Synchronization

/// Hears how many events wait in the queue, or another gauge's figure, which the ingress says with each of
/// its ticks.
final class QueueGauge: SilentMetrics, MeterHandler {
    let counts: AsyncStream<Int>
    private let inlet: AsyncStream<Int>.Continuation
    private let highest = Mutex(0)
    private let label: String

    init(_ label: String = "sealbell_nostr_events_queued") {
        self.label = label
        (counts, inlet) = AsyncStream.makeStream()
    }

    /// The most that waited at any tick.
    var most: Int { highest.withLock { $0 } }

    func set(_ value: Int64) {
        highest.withLock { $0 = max($0, Int(value)) }
        inlet.yield(Int(value))
    }

    func set(_ value: Double) { set(Int64(value)) }
    func increment(by amount: Double) {}
    func decrement(by amount: Double) {}

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        label == self.label ? self : NOOPMetricsHandler.instance
    }
}
