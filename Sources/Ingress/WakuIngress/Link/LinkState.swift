import Delivery
import PushModel

/// What is asked of the node next, and what follows from its answers.
///
/// A subscription is asked for before the first poll and after each fault: a node that has it says so again,
/// and one that was restarted has forgotten it. A node that refused a subscription may note it all the same
/// and then answer polls without ever hearing anything, so it is told to end it first.
struct LinkState: Sendable {
    enum Duty: Sendable, Hashable { case leave, subscribe, poll }

    /// What a poll brought.
    enum Outcome: Sendable {
        /// An answer that was read to its end, with so many messages.
        case whole(Int)
        /// One that was read in part; the node has forgotten the rest.
        case cut
        case failed(NodeFault)
    }

    /// What follows.
    struct Step: Sendable, Equatable {
        var notes: [WakuNote] = []
        /// What came since then may have been missed.
        var gapSince: UnixTime?
        /// `nil`: the next call follows at once.
        var rest: Duration?
    }

    private let limits: WakuLimits
    private(set) var duty = Duty.subscribe
    /// The latest poll was answered.
    private(set) var isListening = false
    /// When the latest poll began that nothing was missed before.
    private var heardAt: UnixTime
    /// Something came between since then.
    private var hasMissed = true
    /// Faults in a row.
    private var faults = 0
    /// Messages of the longest answer so far: as many again may have filled the node's cache.
    private var longest = WakuLimits.leastCache - 1
    /// The latest note of a fault: the same is not made again before the node is well.
    private var trouble: WakuNote?

    /// - Parameter since: from when on the store is asked at the start.
    init(limits: WakuLimits, since: UnixTime) {
        self.limits = limits
        heardAt = since
    }

    mutating func left() -> Step {
        duty = .subscribe
        return Step()
    }

    mutating func subscribed(_ fault: NodeFault?, random: UInt64) -> Step {
        guard let fault else {
            duty = .poll
            return Step()
        }
        var step = failed(fault, random)
        if case .status = fault { duty = .leave } else { duty = .subscribe }
        step.notes = trouble(note(of: fault))
        return step
    }

    mutating func polled(_ outcome: Outcome, begunAt: UnixTime, random: UInt64) -> Step {
        switch outcome {
        case .whole(let count):
            // A full cache has dropped what came before. How much it holds nobody says; an answer that is not
            // longer than another one may be all there was.
            let isFull = count > longest
            longest = max(longest, count)
            return heard(begunAt, isWhole: !isFull, random)
        case .cut:
            var step = heard(begunAt, isWhole: false, random)
            step.notes += trouble(.answerMalformed)
            return step
        case .failed(.status(404, _)):
            // At once after a subscription that was in force, and with patience for one that never is.
            let wasListening = isListening
            var step = failed(.status(404, retryAfter: nil), random)
            step.notes = trouble(wasListening ? .subscriptionLost : .nodeRefuses)
            if wasListening { step.rest = nil }
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
        (hasMissed, heardAt, faults, isListening) = (false, begunAt, 0, true)
        if isWhole { trouble = nil }
        return step
    }

    private mutating func failed(_ fault: NodeFault, _ random: UInt64) -> Step {
        faults += 1
        (hasMissed, isListening, duty) = (true, false, .subscribe)
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
