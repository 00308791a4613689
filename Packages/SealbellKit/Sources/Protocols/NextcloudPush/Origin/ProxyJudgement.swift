public import PushModel
import SealbellKit

/// What becomes of one call's entries after its answer (§4.7). ``ProxyQueue`` goes by it, and so can a queue
/// that stands in a store.
public struct ProxyJudgement: Sendable {
    /// Calls to make instead: none, the same again, or after a 413 two of half the size.
    public let again: [[ProxyQueue.Waiting]]
    /// When the proxy may be called again, by any call; `nil`: at once.
    public let notBefore: UnixTime?
    /// Calls to this proxy that have failed one after the other, this one too.
    public let failures: Int
    /// Number of entries that are given up: refused for good, or too old.
    public let lost: Int
    /// What the answer says of the whole call.
    public let outcome: ProxyVerdict.Outcome
    /// To be shown to the admin for a week.
    public let isRateLimited: Bool

    /// Judges an answer. Which devices go is for ``NextcloudRegistrations/settle(_:to:)``, of each user.
    ///
    /// - Parameter sent: the call's entries, all for one proxy.
    /// - Parameter failures: calls to this proxy that have failed since the last success.
    public init(
        _ answer: ProxyReading, to sent: [ProxyQueue.Waiting], failures: Int, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        self.init(
            ProxyVerdict(answer, to: sent.map(\.entry), rows: []), of: answer.answer, to: sent,
            failures: failures, now: now, using: &generator)
    }

    /// The same for an answer that was read already.
    init(
        _ verdict: ProxyVerdict, of answer: CallAnswer, to sent: [ProxyQueue.Waiting], failures: Int,
        now: UnixTime, using generator: inout some RandomNumberGenerator
    ) {
        outcome = verdict.outcome
        isRateLimited = verdict.isRateLimited
        let asked = answer.pause(now: now)
        guard verdict.outcome == .refused || verdict.outcome == .unreachable else {
            (again, lost, self.failures) = ([], 0, 0)
            notBefore = asked.map { now + $0 }
            return
        }
        let live = Self.live(sent, now: now)
        if answer.status == 413 {
            let half = (live.count + 1) / 2
            let halves = [Array(live.prefix(half)), Array(live.dropFirst(half))]
            again = sent.count < 2 ? [] : halves.filter { !$0.isEmpty }
            self.failures = failures
            notBefore = nil
        } else {
            again = answer.mayPass && !live.isEmpty ? [live] : []
            let count = min(max(failures, 0), NextcloudBackoff.countedFailures) + 1
            self.failures = count
            notBefore =
                answer.mayPass
                ? now + NextcloudBackoff.pause(failures: count, asked: asked, using: &generator) : nil
        }
        lost = sent.count - again.reduce(0) { $0 + $1.count }
    }

    /// Entries that are still worth a call; the others are over (§4.7: a day, and a minute for a call).
    public static func live(_ waiting: [ProxyQueue.Waiting], now: UnixTime) -> [ProxyQueue.Waiting] {
        waiting.filter { $0.until > now }
    }
}
