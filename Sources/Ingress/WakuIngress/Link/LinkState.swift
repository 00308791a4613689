import Delivery
package import PushModel

/// What is asked of the node next, and what follows from its answers.
///
/// A subscription is asked for when a poll says that there is none (404), and never otherwise: go-waku takes
/// a second one as one more, hands each message out once for each, and stops hearing when one of them is
/// full. A node of nwaku's kind that refused a subscription may note it all the same and then answer polls
/// without ever hearing anything, so it is told to end it first.
package struct LinkState: Sendable {
    package enum Duty: Sendable, Hashable { case leave, subscribe, poll }

    /// What a poll brought.
    package enum Outcome: Sendable {
        /// An answer that was read to its end, with so many messages.
        case whole(Int)
        /// One that was read in part; the node has forgotten the rest.
        case cut
        case failed(NodeFault)
    }

    /// What follows.
    package struct Step: Sendable, Equatable {
        package var notes: [WakuNote] = []
        /// What came since then may have been missed.
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
    /// When the latest poll began that nothing was missed before.
    private var heardAt: UnixTime
    /// Something came between since then.
    private var hasMissed = true
    /// Faults in a row.
    private var faults = 0
    /// Messages of the longest answer since the subscription stands, or of the smallest cache: as many again
    /// may be a full cache. A node that comes back may have been restarted with another one, so this ends
    /// with the first fault.
    private var longest = WakuLimits.leastCache
    /// A subscription was taken, and no poll has been answered since.
    private var isNew = false
    /// The latest note of a fault: the same is not made again before the node is well.
    private var trouble: WakuNote?

    /// - Parameter since: from when on the store is asked at the start.
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
        // Whether it holds in spite of a lost answer the next poll says.
        if case .status = fault { duty = .leave } else { duty = .poll }
        step.notes = trouble(note(of: fault))
        return step
    }

    package mutating func polled(_ outcome: Outcome, begunAt: UnixTime, random: UInt64) -> Step {
        switch outcome {
        case .whole(let count):
            // A full cache has dropped what came before. How much it holds nobody says, so each answer that
            // is as long as the longest counts as one: each overflow of one cache has the same length. An
            // answer that is shorter than another one was all there was.
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
            // At once, or with patience where a subscription does not come into force.
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
