public import PushModel

/// What becomes of one call whose entries wait in a store: the same rules as ``ProxyQueue``'s, without its
/// memory (§4.7).
public struct ProxyJudgement: Sendable {
    /// Calls to make instead: none, the same again, or after a 413 two of half the size.
    public let again: [[ProxyQueue.Waiting]]
    /// When the proxy may be called again, by any call; `nil`: at once.
    public let notBefore: UnixTime?
    /// Calls to this proxy that have failed one after the other, this one too.
    public let failures: Int
    /// Entries that are given up: refused for good, or too old.
    public let lost: Int
    public let outcome: ProxyVerdict.Outcome
    /// To be shown to the admin for a week.
    public let isRateLimited: Bool

    /// Judges an answer. Which devices go is for ``NextcloudRegistrations/settle(_:to:)``, of each user.
    ///
    /// - Parameter sent: the call's entries, all for one proxy.
    /// - Parameter failures: calls to this proxy that have failed since the last success.
    public init(
        _ answer: NextcloudAnswer, to sent: [ProxyQueue.Waiting], failures: Int, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        let verdict = ProxyVerdict(answer, to: sent.map(\.entry), rows: [])
        outcome = verdict.outcome
        isRateLimited = verdict.isRateLimited
        guard verdict.outcome == .refused || verdict.outcome == .unreachable else {
            (again, lost, self.failures) = ([], 0, 0)
            notBefore = answer.pause(now: now).map { now + $0 }
            return
        }
        let live = sent.filter { $0.until > now }
        if answer.status == 413 {
            let half = (live.count + 1) / 2
            let halves = [Array(live.prefix(half)), Array(live.dropFirst(half))]
            again = sent.count < 2 ? [] : halves.filter { !$0.isEmpty }
            self.failures = failures
            notBefore = nil
        } else if answer.mayPass {
            again = live.isEmpty ? [] : [live]
            self.failures = min(max(failures, 0), NextcloudBackoff.countedFailures) + 1
            notBefore =
                now
                + NextcloudBackoff.pause(
                    failures: self.failures, asked: answer.pause(now: now), using: &generator)
        } else {
            again = []
            self.failures = min(max(failures, 0), NextcloudBackoff.countedFailures) + 1
            notBefore = nil
        }
        lost = sent.count - again.reduce(0) { $0 + $1.count }
    }

    /// Entries that are still worth a call; the others are over (§4.7: a day, and a minute for a call).
    public static func live(_ waiting: [ProxyQueue.Waiting], now: UnixTime) -> [ProxyQueue.Waiting] {
        waiting.filter { $0.until > now }
    }
}
