import PushModel

/// Whether the push service answers at all (decision 0049). A value.
///
/// REFUSED_STREAM, a connection that ends with the request, a deadline that passes, no access token to send
/// with: no push is to blame and no service has asked for time, so attempts, throttle and breaker do not
/// count them. But a lane that owes hundreds of pushes would go on trying hundreds of times a second. After a
/// few such answers in a row it sends one push, waits for its answer, and waits longer each time; the first
/// answer of the service releases everything at once.
struct Reach: Sendable {
    /// Answers in a row that no service gave.
    private(set) var silences = 0
    /// No other push is tried before this moment.
    private var tryAgainAt: ContinuousClock.Instant?
    private var tries = 0
    /// A push has left since then, and its answer is not known yet.
    private var isTrying = false
    /// Since when there has been something to send and no answer.
    private var waitsSince: ContinuousClock.Instant?
    /// An operator knows.
    private(set) var isUnanswered = false
    /// The service has answered something, since this process began.
    private var hasSpoken = false

    private let threshold: Int
    private let backoff: Backoff
    private let tryEnds: Duration
    private let tellAfter: Duration

    init(limits: DeliveryLimits) {
        threshold = limits.silentAnswers
        backoff = Backoff(base: limits.silentBase, cap: limits.silentCap, floorCap: .zero)
        tryEnds = limits.requestDeadline * 2
        tellAfter = limits.unansweredAfter
    }

    /// Whether neither a service nor a fault of ours caused that answer.
    static func isSilence(_ answer: Answer) -> Bool {
        guard case .retry = answer.outcome, answer.reason != .leaseRanOut else { return false }
        return answer.fate == .unprocessed || answer.fate == .unknown
    }

    /// Whether pushes are tried one at a time.
    var isSilent: Bool { silences >= threshold }

    /// Whether the service answers others, so that many unanswered sends of one push are about that push: the
    /// service has answered something in between.
    func speaks(among sends: Int) -> Bool { hasSpoken && silences < sends }

    func mayTry(_ instant: ContinuousClock.Instant) -> Bool { untilNextTry(instant) == nil }

    /// A push is under way as a try; its answer sets the next moment.
    var isTryUnderWay: Bool { isTrying && isSilent }

    /// `nil`: a push may be tried now.
    func untilNextTry(_ instant: ContinuousClock.Instant) -> Duration? {
        guard isSilent, let tryAgainAt, tryAgainAt > instant else { return nil }
        return tryAgainAt - instant
    }

    /// A push leaves.
    mutating func sent(at instant: ContinuousClock.Instant) {
        // Its answer sets the next moment. If none came, which no provider may do, this moment would hold.
        if isSilent { (isTrying, tryAgainAt) = (true, instant + tryEnds) }
    }

    /// - Parameter random: 64 random bits.
    /// - Returns: whether the service turns out to answer again after an operator was told that it does not.
    mutating func note(_ answer: Answer, at instant: ContinuousClock.Instant, random: UInt64) -> Bool {
        if answer.isAnswered {
            hasSpoken = true
            if silences == 0, waitsSince == nil { return false }
            defer { isUnanswered = false }
            (silences, tries, isTrying, tryAgainAt, waitsSince) = (0, 0, false, nil, nil)
            return isUnanswered
        }
        if isTrying, answer.fate == .local {
            // Our own side refused it: it was not a try, and the next push is tried at once.
            (isTrying, tryAgainAt) = (false, instant)
        }
        guard Self.isSilence(answer) else { return false }
        silences += 1
        // Requests that were under way before the silence was noticed, perhaps a whole connection's, say
        // nothing more.
        guard silences == threshold || isTrying else { return false }
        isTrying = false
        tries += 1
        tryAgainAt = instant + backoff.delay(afterAttempt: tries, asked: nil, random: random)
        return false
    }

    /// Nobody sends any more.
    ///
    /// - Returns: whether an operator was told of a silence, which is now over.
    mutating func end() -> Bool {
        defer { isUnanswered = false }
        return isUnanswered
    }

    /// What the tick sees.
    enum Work: Sendable {
        /// Nothing is owed here.
        case none
        /// The lane may not send, for another reason than the service's silence.
        case heldUp
        /// Every push waits for its next attempt.
        case waits
        /// Something could be sent, or is under way.
        case present
    }

    /// What an operator may hear of: the lane ends with `left`.
    enum News: Sendable { case none, unanswered, over, left }

    /// Ten times a second: has the service been silent for so long that a person should know?
    mutating func tick(_ work: Work, at instant: ContinuousClock.Instant) -> News {
        switch work {
        case .none:
            waitsSince = nil
            defer { isUnanswered = false }
            return isUnanswered ? .over : .none
        case .heldUp:
            waitsSince = isUnanswered ? waitsSince : nil
            return .none
        case .waits where silences == 0:
            waitsSince = isUnanswered ? waitsSince : nil
            return .none
        case .waits, .present:
            let since = waitsSince ?? instant
            waitsSince = since
            guard !isUnanswered, instant - since >= tellAfter else { return .none }
            isUnanswered = true
            return .unanswered
        }
    }
}
