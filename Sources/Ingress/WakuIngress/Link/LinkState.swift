import Delivery
package import PushModel

/// The next call to the node, and what follows from its answers.
///
/// We subscribe only when a poll says that there is no subscription (404): go-waku counts a second
/// subscription as one more, returns each message once for each, and stops receiving when one of them is
/// full. An nwaku node that refused a subscription may still record it and then answer polls without ever
/// receiving anything, so it is told to end it first.
package struct LinkState: Sendable {
    package enum Duty: Sendable, Hashable { case leave, subscribe, poll }

    /// What a poll brought.
    package enum Outcome: Sendable {
        /// An answer that was read to its end, with so many messages.
        case whole(Int)
        /// An answer that was read in part; the node has forgotten the rest.
        case cut
        case failed(NodeFault)
    }

    /// What follows.
    package struct Step: Sendable, Equatable {
        package var notes: [WakuNote] = []
        /// Messages since then may have been missed.
        package var gapSince: UnixTime?
        /// `nil`: the next call follows at once.
        package var rest: Duration?

        package init(notes: [WakuNote] = [], gapSince: UnixTime? = nil, rest: Duration? = nil) {
            self.notes = notes
            self.gapSince = gapSince
            self.rest = rest
        }
    }

    private let limits: WakuLimits
    package private(set) var duty = Duty.poll
    /// The latest poll was answered.
    package private(set) var isListening = false
    /// When the latest poll began before which nothing was missed.
    private var heardAt: UnixTime
    /// Something came between since then.
    private var hasMissed = true
    /// Faults in a row.
    private var faults = 0
    /// The number of messages in the longest answer of this subscription, at least that of the smallest
    /// cache: an answer of this length may come from a full cache. A node that comes back may have been
    /// restarted with another cache, so this is reset by the first fault.
    private var longest = WakuLimits.leastCache
    /// A subscription was taken, and no poll has been answered since.
    private var isNew = false
    /// The latest fault that was noted: the same is not noted again before the node is well.
    private var trouble: WakuNote?

    /// - Parameter since: the start of the range that the store is asked for at the beginning.
    package init(limits: WakuLimits, since: UnixTime) {
        self.limits = limits
        heardAt = since
    }

    package mutating func left() -> Step {
        duty = .subscribe
        return Step()
    }

    package mutating func subscribed(_ fault: NodeFault?, random: UInt64) -> Step {
        isNew = fault == nil
        guard let fault else {
            (duty, longest) = (.poll, WakuLimits.leastCache)
            return Step()
        }
        var step = failed(fault, random)
        // If the answer was lost, the next poll shows whether the subscription exists.
        if case .status = fault { duty = .leave } else { duty = .poll }
        step.notes = trouble(note(of: fault))
        return step
    }

    package mutating func polled(_ outcome: Outcome, begunAt: UnixTime, random: UInt64) -> Step {
        switch outcome {
        case .whole(let count):
            // A full cache has dropped older messages. Its size is unknown, so each answer that is as long as
            // the longest counts as a full cache: every overflow of one cache has the same length. A shorter
            // answer was complete.
            let isFull = count >= longest
            longest = max(longest, count)
            return heard(begunAt, isWhole: !isFull, random)
        case .cut:
            var step = heard(begunAt, isWhole: false, random)
            step.notes += trouble(.answerMalformed)
            return step
        case .failed(.status(404, _)):
            let (wasListening, wasNew) = (isListening, isNew)
            var step = failed(.status(404, retryAfter: nil), random)
            duty = .subscribe
            // At once, or after a wait if a subscription does not take effect.
            if wasNew { step.notes = trouble(.nodeRefuses) } else { step.rest = nil }
            if wasListening { step.notes = trouble(.subscriptionLost) }
            return step
        case .failed(let fault):
            var step = failed(fault, random)
            step.notes = trouble(note(of: fault))
            return step
        }
    }

    // MARK: Inside

    private mutating func heard(_ begunAt: UnixTime, isWhole: Bool, _ random: UInt64) -> Step {
        var step = Step(rest: pace(random))
        if hasMissed || !isWhole { step.gapSince = heardAt }
        if !isListening { step.notes = [.listening] }
        (hasMissed, heardAt, faults, isListening, isNew) = (false, begunAt, 0, true, false)
        if isWhole { trouble = nil }
        return step
    }

    private mutating func failed(_ fault: NodeFault, _ random: UInt64) -> Step {
        faults += 1
        (hasMissed, isListening, isNew, duty) = (true, false, false, .poll)
        longest = WakuLimits.leastCache
        let rest = limits.backoff.delay(afterAttempt: faults, asked: fault.retryAfter, random: random)
        return Step(rest: max(rest, limits.leastRest))
    }

    private mutating func trouble(_ note: WakuNote) -> [WakuNote] {
        guard trouble != note else { return [] }
        trouble = note
        return [note]
    }

    private func note(of fault: NodeFault) -> WakuNote {
        switch fault {
        case .unreachable, .overdue: .nodeAway
        case .tooLarge: .answerTooLarge
        case .malformed: .answerMalformed
        case .status: .nodeRefuses
        }
    }

    private func pace(_ random: UInt64) -> Duration {
        let (least, most) = (limits.poll.lowerBound, limits.poll.upperBound)
        let width = UInt64(max(0, (most - least).wholeMilliseconds)) + 1
        return least + .milliseconds(Int64(random.multipliedFullWidth(by: width).high))
    }
}
