import CoreMetrics
import PushModel

/// Names of this target's metrics.
enum NostrMetric: String, CaseIterable {
    case connected = "sealbell_nostr_relays_connected"
    case configured = "sealbell_nostr_relays_configured"
    case queued = "sealbell_nostr_events_queued"
    case events = "sealbell_nostr_events_total"
    case held = "sealbell_nostr_events_held"
    case passedOver = "sealbell_nostr_events_passed_over_total"
    case takenUp = "sealbell_nostr_events_taken_up_total"
    case notes = "sealbell_nostr_relay_notes_total"
}

/// Counters of one instance. Labels are its name and words of closed lists.
final class NostrMetrics: Sendable {
    private let instance: ConfiguredName
    private let factory: any MetricsFactory
    private let connected: Meter
    private let configured: Meter
    private let queued: Meter
    private let held: Meter
    private let passed: Counter
    private let takenUp: Counter
    private let live: Counter
    private let stored: Counter
    private let missed: Counter

    init(_ instance: ConfiguredName, _ factory: any MetricsFactory) {
        self.instance = instance
        self.factory = factory
        let label = ("instance", instance.text)
        func meter(_ name: NostrMetric) -> Meter {
            Meter(label: name.rawValue, dimensions: [label], factory: factory)
        }
        connected = meter(.connected)
        configured = meter(.configured)
        queued = meter(.queued)
        held = meter(.held)
        passed = Counter(label: NostrMetric.passedOver.rawValue, dimensions: [label], factory: factory)
        takenUp = Counter(label: NostrMetric.takenUp.rawValue, dimensions: [label], factory: factory)
        func counter(_ source: String) -> Counter {
            Counter(
                label: NostrMetric.events.rawValue, dimensions: [label, ("standing", source)],
                factory: factory)
        }
        live = counter("live")
        stored = counter("stored")
        missed = counter("missed")
    }

    func taken(_ source: EventSource) {
        switch source {
        case .live: live.increment()
        case .stored: stored.increment()
        case .missed: missed.increment()
        }
    }
    func relays(_ count: Int) { configured.set(count) }
    func waiting(_ count: Int) { queued.set(count) }
    func held(_ count: Int) { held.set(count) }
    func passedOver() { passed.increment() }
    func tookUp() { takenUp.increment() }
    func isListening(_ count: Int) { connected.set(count) }

    func count(_ note: RelayNote) {
        Counter(
            label: NostrMetric.notes.rawValue,
            dimensions: [("instance", instance.text), ("note", note.code.text)], factory: factory
        ).increment()
    }
}
