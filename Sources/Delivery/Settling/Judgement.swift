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
    /// A call that may have rung already is not sent again.
    var isSpentCall = false
    /// It was sent as often as it may be, and nobody can tell whether it has arrived.
    var isGivenUp = false

    /// Whether the lane, or the push's destination, is halted for its credential.
    enum Halt: Sendable {
        case none, halted
        /// Halted, and the push was sent to find out whether that still holds.
        case probe
    }

    /// What a history counts; `nil`: an end of custody, which is counted with those that were not sent
    /// (``Lane/countExpired(_:)``).
    func event(of outcome: Outcome) -> RegistrationEvent? {
        if outcome.isAccepted { return .delivered }
        if custodyEnds { return nil }
        if isSpentCall || isGivenUp { return .dropped }
        let ends =
            switch step {
            case .settle?, .withdraw?: true
            case .retry?, .park?, nil: false
            }
        return ends ? .refused : .delayed
    }

    /// - Parameter outcome: the answer's outcome after the protocol's override.
    /// - Parameter halt: the state after this answer.
    /// - Parameter latest: the latest time that is believed: later than `now` where our own clock is behind.
    /// - Parameter doubt: how far the clock is ahead of the time by which custody of this push ends.
    /// - Parameter spares: the lane meets so many target faults that no registration may be blamed.
    /// - Parameter unreached: how often in a row no service had looked at the push before.
    /// - Parameter speaks: the service answers others.
    static func of(
        _ push: OwedPush, answer: Answer, outcome: Outcome, spares: Bool, halt: Halt = .none, now: UnixTime,
        latest: UnixTime? = nil, doubt: Duration = .zero, limits: DeliveryLimits, random: UInt64,
        unreached: Int = 0,
        speaks: Bool = true
    ) -> Judgement {
        switch outcome {
        case .accepted: return Judgement(step: .settle, first: .accepted)
        case .rejected: return Judgement(step: .settle, first: .rejected)
        case .misconfigured(.target): return Judgement(step: .settle, first: .misconfigured)
        case .misconfigured(.credential):
            // No push is lost to our own fault: a probe waits where it is until the credential works again.
            // Otherwise the fault may be a stray, or concern only this push, which is tried again by itself.
            if halt == .probe { return Judgement(step: nil, first: .misconfigured) }
            var judged = again(push, answer, after: nil, now: now, doubt, limits, random, unreached)
            if halt == .halted, !judged.custodyEnds { judged.first = .misconfigured }
            return judged
        case .unregistered(let since):
            if spares, answer.isAnswered, Breaker.isTargetFault(answer) {
                return Judgement(step: .settle, first: .misconfigured)
            }
            // The registration was renewed after the service knew the token as dead: registration and push
            // live on, until it turns out that the service does not learn of the renewal. A renewal of days
            // to come was stamped by a clock far ahead, and would keep a dead token until then; by a clock
            // of our own that is behind, every renewal would be one.
            let latest = max(now, latest ?? now)
            if let since, push.touchedAt > since, push.touchedAt.since(latest) <= DoubtedClock.tolerance {
                guard push.attempt + 1 < limits.renewedAttempts else {
                    return Judgement(step: .settle, first: .rejected)
                }
                return again(push, answer, after: nil, now: now, doubt, limits, random, unreached)
            }
            var judged = Judgement(step: .settle, first: .unregistered)
            if let record = push.record {
                // The answer is about the token that was sent, and about the registration as it was then. It
                // does not judge a later registration.
                judged.feedback = [
                    .expireStored(
                        record, at: now,
                        if: .madeFrom(touchedAt: push.touchedAt, address: push.registeredAddress))
                ]
            }
            return judged
        case .retry(let after):
            // A phone must not ring twice for one call (docs/push-services.md §2.6); only calls are urgent.
            if answer.fate == .unknown, push.pushClass == .urgent {
                return Judgement(step: .settle, first: .retry, isSpentCall: true)
            }
            if answer.fate == .unknown {
                return unknown(push, answer, speaks: speaks, now: now, doubt, limits, random)
            }
            if answer.reason.meaning.contains(.endsAfterSome) {
                return unreadable(push, asked: after, now: now, doubt, limits, random)
            }
            return again(push, answer, after: after, now: now, doubt, limits, random, unreached)
        }
    }

    private static func again(
        _ push: OwedPush, _ answer: Answer, after: Duration?, now: UnixTime, _ doubt: Duration,
        _ limits: DeliveryLimits, _ random: UInt64, _ unreached: Int
    ) -> Judgement {
        // A push that the service never processed has not been attempted. Its wait still grows, because the
        // peer may refuse only this push, but not so far that it would leave memory.
        let isAttempt = answer.fate != .unprocessed
        let attempts = isAttempt ? push.attempts.andOne() : push.attempts
        // The call's own back-off decides how long it waits: the random part adds a second at most.
        let isToldCall = push.lane.service == .uplink && after ?? .zero > .zero
        let backoff = Backoff(
            base: limits.backoffBase,
            cap: isToldCall
                ? limits.backoffBase : isAttempt ? limits.backoffCap : limits.keepRetryWithin,
            floorCap: limits.retryCap(of: push.lane.service))
        let step = isAttempt ? attempts.made : max(attempts.made, unreached + 1)
        let wait = backoff.delay(afterAttempt: step, asked: after, random: random)
        return retry(push, attempts, after: wait, now: now, doubt, limits)
    }

    /// It may have arrived. While the service answers nobody, the push stays owed; once the service answers,
    /// it is sent a few times at most.
    private static func unknown(
        _ push: OwedPush, _ answer: Answer, speaks: Bool, now: UnixTime, _ doubt: Duration,
        _ limits: DeliveryLimits, _ random: UInt64
    ) -> Judgement {
        let attempts = push.attempts.andOneUnknown()
        if speaks, attempts.unknown >= limits.unknownSends {
            return Judgement(step: .settle, first: .retry, isGivenUp: true)
        }
        // A repeat that leaves before the answer to the first is certainly a duplicate.
        let base = answer.late == nil ? limits.unknownBase : limits.lateBase
        let ceiling = grown(base, by: attempts.unknown, limits)
        return retry(
            push, attempts, after: ceiling / 2 + jitter(ceiling / 2, random), now: now, doubt, limits)
    }

    /// The answer cannot be read: the fault may pass, or it may always meet this push.
    private static func unreadable(
        _ push: OwedPush, asked after: Duration?, now: UnixTime, _ doubt: Duration, _ limits: DeliveryLimits,
        _ random: UInt64
    ) -> Judgement {
        let attempts = push.attempts.andOneUnreadable()
        guard attempts.unreadable < limits.unreadableAttempts else {
            return Judgement(step: .settle, first: .rejected)
        }
        let asked = min(after ?? .zero, limits.retryAfterCap)
        let wait = asked + jitter(grown(limits.backoffBase, by: attempts.unreadable, limits), random)
        return retry(push, attempts, after: wait, now: now, doubt, limits)
    }

    /// - Parameter times: from 1.
    private static func grown(_ base: Duration, by times: Int, _ limits: DeliveryLimits) -> Duration {
        (1..<max(1, times)).reduce(base) { ceiling, _ in
            min(ceiling * limits.unknownGrowth, limits.retryAfterCap)
        }
    }

    /// Less than the span, in whole milliseconds.
    private static func jitter(_ span: Duration, _ random: UInt64) -> Duration {
        let milliseconds = UInt64(max(1, span.wholeMilliseconds))
        return .milliseconds(Int64(random.multipliedFullWidth(by: milliseconds).high))
    }

    private static func retry(
        _ push: OwedPush, _ attempts: Attempts, after wait: Duration, now: UnixTime, _ doubt: Duration,
        _ limits: DeliveryLimits
    ) -> Judgement {
        let notBefore = now + wait
        guard notBefore - doubt < push.custodyEnds else {
            return Judgement(step: .settle, first: .retry, custodyEnds: true)
        }
        let parked = wait > limits.keepRetryWithin
        return Judgement(
            step: .retry(notBefore: notBefore, attempt: attempts.stored, lane: push.lane, parked: parked),
            first: .retry)
    }
}
