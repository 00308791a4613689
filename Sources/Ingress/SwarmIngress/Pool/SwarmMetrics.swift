import CoreMetrics
import Delivery
import PushModel
import SessionPush

/// Why a notice was not handed on.
package enum DropReason: String, Sendable, Hashable, CaseIterable {
    case malformed
    /// Its account is not in the node's swarm.
    case foreign
    /// The store could not take it until it expired, or the process stopped.
    case storeOut = "store-out"
}

/// Counters of one instance. Labels are its name and words of closed lists.
struct SwarmMetrics: Sendable {
    private let known: Meter
    private let ours: Meter
    private let connected: Meter
    private let dialling: Meter
    private let watches: Meter
    private let queued: Meter
    private let shown: Counter
    let received: Counter
    private let refused: WordMeter
    private let dropped: WordMeter
    private let notes: WordMeter

    init(_ instance: ConfiguredName, _ factory: any MetricsFactory) {
        known = factory.meter("sealbell_swarm_nodes_known", of: instance)
        ours = factory.meter("sealbell_swarm_nodes_ours", of: instance)
        connected = factory.meter("sealbell_swarm_nodes_connected", of: instance)
        dialling = factory.meter("sealbell_swarm_nodes_dialling", of: instance)
        watches = factory.meter("sealbell_swarm_watches", of: instance)
        queued = factory.meter("sealbell_swarm_pushes_queued", of: instance)
        shown = factory.counter("sealbell_swarm_watches_shown_total", of: instance)
        received = factory.counter("sealbell_swarm_pushes_received_total", of: instance)
        refused = WordMeter("sealbell_swarm_watches_refused_total", by: "reason", of: instance, factory)
        dropped = WordMeter("sealbell_swarm_pushes_dropped_total", by: "reason", of: instance, factory)
        notes = WordMeter("sealbell_swarm_notes_total", by: "note", of: instance, factory)
    }

    func show(_ statistics: SwarmStatistics) {
        known.set(statistics.nodes)
        ours.set(statistics.ours)
        connected.set(statistics.connected)
        dialling.set(statistics.dialling)
        watches.set(statistics.watches)
        queued.set(statistics.queued)
    }

    func shown(_ count: Int) { shown.increment(by: count) }
    func refused(_ refusal: MonitorRefusal) { refused.count(refusal.label) }
    func count(_ note: SwarmNote) { notes.count(note.code) }
    func dropped(_ reason: DropReason) { dropped.count(reason.rawValue) }
}
