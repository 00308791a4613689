import AdminIngress
import CoreMetrics
import PushModel
import Synchronization

/// What became of the last reload: for anyone who wonders which configuration is in force.
final class ReloadMemory: Sendable {
    enum Outcome: Sendable {
        case done
        /// The configuration of before stays in force.
        case refused(ErrorCode)
    }

    private let held = Mutex<ReloadReport?>(nil)
    private let metrics: any MetricsFactory

    init(_ metrics: any MetricsFactory) { self.metrics = metrics }

    /// `nil` when there was none since the start.
    var last: ReloadReport? { held.withLock(\.self) }

    func note(_ outcome: Outcome, at now: UnixTime) {
        let report =
            switch outcome {
            case .done: ReloadReport(at: now, refusal: nil)
            case .refused(let code): ReloadReport(at: now, refusal: code.logText)
            }
        held.withLock { $0 = report }
        Counter(
            label: "sealbell_reloads_total",
            dimensions: [("outcome", report.refusal == nil ? "done" : "refused")], factory: metrics
        ).increment()
    }
}
