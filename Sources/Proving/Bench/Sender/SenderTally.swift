import PushModel
import Synchronization

/// Counts of a sender's run, shared by its workers.
final class SenderTally: Sendable {
    private let next = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let failed = Atomic<Int>(0)
    private let sent = Atomic<Int>(0)
    private let resentUnknown = Atomic<Int>(0)
    private let resentUnprocessed = Atomic<Int>(0)
    private let resentOnRequest = Atomic<Int>(0)
    private let firstFault = Mutex<Reason?>(nil)
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// The number of the next push; `nil` when all are taken.
    func take() -> Int? {
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return number < limit ? number : nil
    }

    func wasSent() { sent.wrappingAdd(1, ordering: .relaxed) }

    /// Counts an answer; true when the push should be sent again.
    func answered(_ answer: Answer, attempt: Int) -> Bool {
        switch answer.outcome {
        case .accepted:
            accepted.wrappingAdd(1, ordering: .relaxed)
            return false
        case .retry where attempt <= SenderPlan.resendLimit:
            switch answer.fate {
            case .unknown: resentUnknown.wrappingAdd(1, ordering: .relaxed)
            case .unprocessed: resentUnprocessed.wrappingAdd(1, ordering: .relaxed)
            case .answered, .local: resentOnRequest.wrappingAdd(1, ordering: .relaxed)
            }
            return true
        case .retry, .unregistered, .rejected, .misconfigured:
            failed.wrappingAdd(1, ordering: .relaxed)
            firstFault.withLock { if $0 == nil { $0 = answer.reason } }
            return false
        }
    }

    func write(to report: inout BenchReport) {
        report.add("sent", sent.load(ordering: .relaxed))
        report.add("accepted", accepted.load(ordering: .relaxed))
        report.add("failed", failed.load(ordering: .relaxed))
        report.add("resent_unknown", resentUnknown.load(ordering: .relaxed))
        report.add("resent_unprocessed", resentUnprocessed.load(ordering: .relaxed))
        report.add("resent_on_request", resentOnRequest.load(ordering: .relaxed))
        if let reason = firstFault.withLock({ $0 }) { report.add("first_fault", .text(reason.rawValue)) }
    }

    var failures: Int { failed.load(ordering: .relaxed) }
}
