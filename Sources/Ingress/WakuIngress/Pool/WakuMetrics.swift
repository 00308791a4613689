import CoreMetrics
import Delivery
import PushModel

/// The result for a message that a node has returned.
enum MessageOutcome: String, Sendable, Hashable, CaseIterable {
    case live, stored
    /// Of a topic that nobody follows.
    case foreign
    case repeated, malformed
}

/// Counters of one instance. Labels are its name and words of closed lists.
struct WakuMetrics: Sendable {
    private let listening: Meter
    private let topics: Meter
    private let queued: Meter
    private let publishing: Meter
    private let messages: WordMeter
    private let published: WordMeter
    private let notes: WordMeter

    init(_ instance: ConfiguredName, _ factory: any MetricsFactory) {
        listening = factory.meter("sealbell_waku_listening", of: instance)
        topics = factory.meter("sealbell_waku_topics", of: instance)
        queued = factory.meter("sealbell_waku_queued", of: instance)
        publishing = factory.meter("sealbell_waku_publishing", of: instance)
        messages = WordMeter(
            "sealbell_waku_messages_total", by: "outcome", of: instance,
            from: MessageOutcome.allCases.map(\.rawValue), factory)
        published = WordMeter("sealbell_waku_published_total", by: "outcome", of: instance, factory)
        notes = WordMeter("sealbell_waku_notes_total", by: "note", of: instance, factory)
    }

    func show(_ statistics: WakuStatistics) {
        listening.set(statistics.isListening ? 1 : 0)
        topics.set(statistics.topics)
        queued.set(statistics.queued)
        publishing.set(statistics.publishing)
    }

    func count(_ outcome: MessageOutcome, _ number: Int = 1) {
        if number > 0 { messages.count(outcome.rawValue, number) }
    }

    /// - Parameter error: `nil`: the node took it.
    func published(_ error: WakuError?) { published.count(error?.codeText ?? "taken") }

    func count(_ note: WakuNote) { notes.count(note.code) }
}
