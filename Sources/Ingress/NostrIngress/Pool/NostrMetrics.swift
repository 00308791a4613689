import CoreMetrics
import Delivery
import PushModel

/// Counters of one instance. Labels are its name and words of closed lists.
struct NostrMetrics: Sendable {
    let connected: Meter
    let configured: Meter
    let queued: Meter
    let held: Meter
    let passedOver: Counter
    let takenUp: Counter
    private let events: WordMeter
    private let notes: WordMeter

    init(_ instance: ConfiguredName, _ factory: any MetricsFactory) {
        connected = factory.meter("sealbell_nostr_relays_connected", of: instance)
        configured = factory.meter("sealbell_nostr_relays_configured", of: instance)
        queued = factory.meter("sealbell_nostr_events_queued", of: instance)
        held = factory.meter("sealbell_nostr_events_held", of: instance)
        passedOver = factory.counter("sealbell_nostr_events_passed_over_total", of: instance)
        takenUp = factory.counter("sealbell_nostr_events_taken_up_total", of: instance)
        events = WordMeter(
            "sealbell_nostr_events_total", by: "standing", of: instance, from: ["live", "stored", "missed"],
            factory)
        notes = WordMeter("sealbell_nostr_relay_notes_total", by: "note", of: instance, factory)
    }

    func taken(_ source: EventSource) {
        switch source {
        case .live: events.count("live")
        case .stored: events.count("stored")
        case .missed: events.count("missed")
        }
    }

    func count(_ note: RelayNote) { notes.count(note.code) }
}
