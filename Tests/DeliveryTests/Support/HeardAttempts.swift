import Delivery
import PushModel
import PushTesting
import Synchronization

/// The answers that an operator would hear of.
final class HeardAttempts: Sendable {
    private let list = Mutex<[Attempt]>([])
    let words = Trace()

    var all: [Attempt] { list.withLock { $0 } }

    /// `acme/fcm/production 1 retry ServiceUnavailable again`
    func add(_ attempt: Attempt) {
        list.withLock { $0.append(attempt) }
        let next =
            switch attempt.next {
            case .ended: "ended"
            case .again: "again"
            case .waits: "waits"
            case .elsewhere: "elsewhere"
            }
        words.add(
            "\(attempt.lane) \(attempt.number) \(attempt.outcome.label) \(attempt.reason.rawValue) \(next)")
    }
}
