import CoreMetrics
import PushModel

/// Names of this target's metrics.
package enum WakuMetric: String, Sendable, Hashable, CaseIterable {
    case listening = "sealbell_waku_listening"
    case topics = "sealbell_waku_topics"
    case queued = "sealbell_waku_queued"
    case publishing = "sealbell_waku_publishing"
    case messages = "sealbell_waku_messages_total"
    case published = "sealbell_waku_published_total"
    case notes = "sealbell_waku_notes_total"
}

/// The result for a message that a node has returned.
enum MessageOutcome: String, Sendable, Hashable, CaseIterable {
    case live, stored
    /// Of a topic that nobody follows.
    case foreign
    case repeated, malformed
}

/// Counters of one instance. Labels are its name and words of closed lists.
final class WakuMetrics: Sendable {
    private let instance: ConfiguredName
    private let factory: any MetricsFactory
    private let gauges: [WakuMetric: Meter]
    private let messages: [MessageOutcome: Counter]

    init(_ instance: ConfiguredName, _ factory: any MetricsFactory) {
        self.instance = instance
        self.factory = factory
        let label = ("instance", instance.text)
        let metered: [WakuMetric] = [.listening, .topics, .queued, .publishing]
        gauges = Dictionary(
            uniqueKeysWithValues: metered.map {
                ($0, Meter(label: $0.rawValue, dimensions: [label], factory: factory))
            })
        messages = Dictionary(
            uniqueKeysWithValues: MessageOutcome.allCases.map {
                (
                    $0,
                    Counter(
                        label: WakuMetric.messages.rawValue, dimensions: [label, ("outcome", $0.rawValue)],
                        factory: factory)
                )
            })
    }

    func show(_ statistics: WakuStatistics) {
        gauges[.listening]?.set(statistics.isListening ? 1 : 0)
        gauges[.topics]?.set(statistics.topics)
        gauges[.queued]?.set(statistics.queued)
        gauges[.publishing]?.set(statistics.publishing)
    }

    func count(_ outcome: MessageOutcome, _ number: Int = 1) {
        if number > 0 { messages[outcome]?.increment(by: number) }
    }

    /// - Parameter error: `nil`: the node took it.
    func published(_ error: WakuError?) { count(.published, "outcome", error?.codeText ?? "taken") }

    func count(_ note: WakuNote) { count(.notes, "note", note.code.text) }

    private func count(_ metric: WakuMetric, _ name: String, _ word: String) {
        Counter(
            label: metric.rawValue, dimensions: [("instance", instance.text), (name, word)], factory: factory
        ).increment()
    }
}
