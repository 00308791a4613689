import CoreMetrics
import PushModel
import Synchronization

/// One lane's figures. Labels are the lane's configured name and words of closed lists, never an address.
final class LaneMeter: Sendable {
    private struct Key: Hashable {
        let outcome: OutcomeKind
        let reason: Reason
    }

    private let lane: String
    private struct Answers {
        var counters: [Key: Counter] = [:]
        /// The last answer's: the next one is nearly always like it.
        var last: (key: Key, counter: Counter)?
    }

    private let answers = Mutex(Answers())
    private let inMemory: Gauge
    private let parked: Gauge
    private let isHalted: Gauge
    private let isSlowed: Gauge
    private let isUnanswered: Gauge
    /// One for each class, in order.
    private let latencies: [Timer]

    init(_ lane: LaneName) {
        self.lane = lane.description
        let labels = [("lane", lane.description)]
        inMemory = Gauge(label: "sealbell_lane_pushes_in_memory", dimensions: labels)
        parked = Gauge(label: "sealbell_lane_pushes_parked", dimensions: labels)
        isHalted = Gauge(label: "sealbell_lane_halted", dimensions: labels)
        isHalted.record(0)
        isSlowed = Gauge(label: "sealbell_lane_slowed", dimensions: labels)
        isSlowed.record(0)
        isUnanswered = Gauge(label: "sealbell_lane_unanswered", dimensions: labels)
        isUnanswered.record(0)
        latencies = PushClass.allCases.map {
            Timer(label: "sealbell_push_latency_seconds", dimensions: labels + [("class", Self.word($0))])
        }
    }

    private static func word(_ pushClass: PushClass) -> String {
        switch pushClass {
        case .urgent: "urgent"
        case .normal: "normal"
        case .background: "background"
        }
    }

    /// The push service accepted a push: the time since the relay accepted it, including all waits and
    /// attempts.
    func accepted(_ push: OwedPush, at now: UnixTime) {
        // Not negative even if the clock was set back.
        let span = max(0, now.since(push.id.acceptedAt).wholeMilliseconds)
        latencies[Int(push.pushClass.rawValue)].recordMilliseconds(span)
    }

    /// Outcomes and reasons are enums, so the counters are bounded by their product.
    func answered(_ answer: Answer) {
        let key = Key(outcome: OutcomeKind(answer.outcome), reason: answer.reason)
        let counter = answers.withLock { answers in
            if let last = answers.last, last.key == key { return last.counter }
            let counter = answers.counters[key] ?? made(key)
            answers.counters[key] = counter
            answers.last = (key, counter)
            return counter
        }
        counter.increment()
    }

    private func made(_ key: Key) -> Counter {
        Counter(
            label: "sealbell_push_answers_total",
            dimensions: [("lane", lane), ("outcome", key.outcome.label), ("reason", key.reason.rawValue)])
    }

    func backlog(inMemory count: Int, parked waiting: Int) {
        inMemory.record(count)
        parked.record(waiting)
    }

    /// Whether the service's refusals have slowed the lane to a few pushes a tick.
    func slowed(_ slowed: Bool) { isSlowed.record(slowed ? 1 : 0) }

    /// Whether the service has not answered for a while.
    func unanswered(_ unanswered: Bool) { isUnanswered.record(unanswered ? 1 : 0) }

    func halted(_ halted: Bool) { isHalted.record(halted ? 1 : 0) }
}
