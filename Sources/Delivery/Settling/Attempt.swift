package import PushModel

/// One answer of a push service for one push, as an operator may see it: no address, no content, no origin.
package struct Attempt: Sendable, Hashable {
    /// What follows from the answer.
    package enum Next: Sendable, Hashable {
        /// The push has ended: it was accepted, or nothing could come of another attempt.
        case ended
        /// It is tried again, not before then.
        case again(at: UnixTime)
        /// It stands in its place until the lane's credential works.
        case waits
        /// It goes on in the app's other environment, as part of the same attempt.
        case elsewhere
    }

    // In an order, and of sizes, that leave no gaps: thousands of them stay in memory.
    package let id: PushID
    package let lane: LaneName
    /// After the protocol's own reading of the answer.
    package let outcome: OutcomeKind
    private let count: Int32
    package let sentAt: UnixTime
    package let answeredAt: UnixTime
    /// The push service's literal word.
    package let reason: Reason
    package let next: Next

    /// From 1.
    package var number: Int { Int(count) }

    package init(
        id: PushID, lane: LaneName, number: Int, sentAt: UnixTime, answeredAt: UnixTime, outcome: OutcomeKind,
        reason: Reason, next: Next
    ) {
        self.id = id
        self.lane = lane
        count = Int32(clamping: number)
        self.sentAt = sentAt
        self.answeredAt = answeredAt
        self.outcome = outcome
        self.reason = reason
        self.next = next
    }

    init(_ push: OwedPush, _ answer: Answer, _ outcome: Outcome, _ next: Next, at now: UnixTime) {
        self.init(
            id: push.id, lane: push.lane, number: push.attempt + 1, sentAt: answer.sentAt, answeredAt: now,
            outcome: OutcomeKind(outcome), reason: answer.reason, next: next)
    }
}

// Each push asks these questions two dozen times. A pattern costs an instruction or two; a comparison is a
// call into the type's module, and several calls for an outcome, which may contain a time.

extension Outcome {
    var isAccepted: Bool { if case .accepted = self { true } else { false } }
}

extension Answer {
    /// These are the service's own words.
    var isAnswered: Bool { if case .answered = fate { true } else { false } }
}

extension OwedPush {
    var isDurable: Bool { if case .durable = custody { true } else { false } }
    var isVolatile: Bool { if case .volatile = custody { true } else { false } }
}

extension Attempt.Next {
    /// - Parameter step: what the answer makes of the row; `nil`: nothing.
    init(_ step: Settlement.Step?) {
        switch step {
        case nil, .park?: self = .waits
        case .settle?, .withdraw?: self = .ended
        case .retry(let notBefore, _, _, _)?: self = .again(at: notBefore)
        }
    }
}

/// What came of one push that an operator sent to see what comes of it.
package struct TestPushResult: Sendable {
    package let id: PushID
    package let lane: LaneName
    /// `nil`: no connection to the push service within ``DeliveryLimits/trialWait``.
    package let answer: Answer?
}
