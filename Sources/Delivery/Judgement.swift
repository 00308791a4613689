import PushModel

/// What follows from one answer for one push: the step of its row, the feedback for its registration, and the
/// word for the peer. Pure.
struct Judgement: Sendable {
    /// `nil`: the row stays as it is and the push goes back to its place in the queue.
    var step: Settlement.Step?
    var feedback: [Change] = []
    /// The word of the first attempt; `nil` for a push that goes on in the other environment as part of it.
    var first: OutcomeKind?
    /// Another attempt would come too late.
    var custodyEnds = false

    /// - Parameter outcome: the answer's outcome after the protocol's override.
    /// - Parameter doubt: how far the clock is ahead of the time by which custody of this push ends.
    /// - Parameter spares: the lane meets so many target faults that no registration may be blamed.
    static func of(
        _ push: OwedPush, answer: Answer, outcome: Outcome, spares: Bool, now: UnixTime,
        doubt: Duration = .zero, limits: DeliveryLimits, random: UInt64
    ) -> Judgement {
        switch outcome {
        case .accepted: return Judgement(step: .settle, first: .accepted)
        case .rejected: return Judgement(step: .settle, first: .rejected)
        case .misconfigured(.target): return Judgement(step: .settle, first: .misconfigured)
        case .misconfigured(.credential):
            // Nobody's push is lost to our own fault: it waits where it is until the credential works again.
            return Judgement(step: nil, first: .misconfigured)
        case .unregistered(let since):
            if spares, Breaker.isTargetFault(answer) {
                return Judgement(step: .settle, first: .misconfigured)
            }
            let dead = since ?? answer.sentAt
            // Renewed after the service knew it dead: the registration lives, and so does the push.
            if since != nil, push.touchedAt > dead { return Judgement(step: .settle, first: .rejected) }
            var judged = Judgement(step: .settle, first: .unregistered)
            if let record = push.record {
                judged.feedback = [.expireStored(record, at: now, notTouchedAfter: dead)]
            }
            return judged
        case .retry(let after):
            let backoff = Backoff(
                base: limits.backoffBase, cap: limits.backoffCap, floorCap: limits.retryAfterCap)
            // A push that was never processed has not been attempted; it goes again without a longer wait.
            let attempt = answer.fate == .unprocessed ? push.attempt : push.attempt + 1
            let delay = backoff.delay(afterAttempt: max(attempt, 1), asked: after, random: random)
            let notBefore = now + delay
            guard notBefore - doubt < push.custodyEnds else {
                return Judgement(step: .settle, first: .retry, custodyEnds: true)
            }
            return retry(push, attempt: attempt, at: notBefore, now: now, first: .retry, limits: limits)
        }
    }

    private static func retry(
        _ push: OwedPush, attempt: Int, at notBefore: UnixTime, now: UnixTime, first: OutcomeKind,
        limits: DeliveryLimits
    ) -> Judgement {
        let parked = notBefore.since(now) > limits.keepRetryWithin
        return Judgement(
            step: .retry(notBefore: notBefore, attempt: attempt, lane: push.lane, parked: parked),
            first: first)
    }
}
