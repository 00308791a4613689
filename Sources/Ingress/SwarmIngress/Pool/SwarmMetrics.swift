import CoreMetrics
import PushModel
import SessionPush

/// Names of this target's metrics.
enum SwarmMetric: String, CaseIterable {
    case known = "sealbell_swarm_nodes_known"
    case ours = "sealbell_swarm_nodes_ours"
    case connected = "sealbell_swarm_nodes_connected"
    case dialling = "sealbell_swarm_nodes_dialling"
    case watches = "sealbell_swarm_watches"
    case shown = "sealbell_swarm_watches_shown_total"
    case refused = "sealbell_swarm_watches_refused_total"
    case received = "sealbell_swarm_pushes_received_total"
    case dropped = "sealbell_swarm_pushes_dropped_total"
    case queued = "sealbell_swarm_pushes_queued"
    case notes = "sealbell_swarm_notes_total"
}

/// Why a push was not handed on.
package enum DropReason: String, Sendable, Hashable, CaseIterable {
    case malformed
    /// Its account is not in the node's swarm.
    case foreign
    /// The store could not take it until it expired, or the process stopped.
    case storeOut = "store-out"
}

/// Counters of one instance. Labels are its name and words of closed lists.
final class SwarmMetrics: Sendable {
    private let instance: ConfiguredName
    private let factory: any MetricsFactory
    private let gauges: [SwarmMetric: Meter]
    private let shown: Counter
    private let received: Counter

    init(_ instance: ConfiguredName, _ factory: any MetricsFactory) {
        self.instance = instance
        self.factory = factory
        let label = ("instance", instance.text)
        let metered: [SwarmMetric] = [.known, .ours, .connected, .dialling, .watches, .queued]
        gauges = Dictionary(
            uniqueKeysWithValues: metered.map {
                ($0, Meter(label: $0.rawValue, dimensions: [label], factory: factory))
            })
        shown = Counter(label: SwarmMetric.shown.rawValue, dimensions: [label], factory: factory)
        received = Counter(label: SwarmMetric.received.rawValue, dimensions: [label], factory: factory)
    }

    func show(_ statistics: SwarmStatistics) {
        gauges[.known]?.set(statistics.nodes)
        gauges[.ours]?.set(statistics.ours)
        gauges[.connected]?.set(statistics.connected)
        gauges[.dialling]?.set(statistics.dialling)
        gauges[.watches]?.set(statistics.watches)
        gauges[.queued]?.set(statistics.queued)
    }

    func countReceived() { received.increment() }

    func dropped(_ reason: DropReason) { count(.dropped, "reason", reason.rawValue) }

    func count(_ note: SwarmNote) {
        switch note {
        case .shown(let count): shown.increment(by: count)
        case .watchRefused(let refusal): count(.refused, "reason", refusal.label)
        default: count(.notes, "note", note.code.text)
        }
    }

    private func count(_ metric: SwarmMetric, _ name: String, _ word: String) {
        Counter(
            label: metric.rawValue, dimensions: [("instance", instance.text), (name, word)], factory: factory
        ).increment()
    }
}
