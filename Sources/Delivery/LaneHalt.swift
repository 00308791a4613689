import PushModel

/// Whether a lane is halted, and when it probes (decision 0048). A value.
struct LaneHalt: Sendable {
    private var breaker: Breaker
    private var nextProbe: ContinuousClock.Instant?
    /// When the probes that came back stand in their places again.
    private var turnsEnd: ContinuousClock.Instant?
    private let probeEvery: Duration
    /// How long probes that came back wait for others when the lane goes on.
    private let probesWait: Duration

    init(limits: DeliveryLimits) {
        probeEvery = limits.probeEvery
        probesWait = limits.backoffBase
        breaker = Breaker(
            answers: limits.breakerAnswers, addresses: limits.breakerAddresses,
            witnesses: limits.breakerWitnesses, memory: limits.originsRemembered)
    }

    var isHalted: Bool { breaker.state != .open }
    var isForTargets: Bool { breaker.state == .halted(.targets) }
    /// What halts it.
    var cause: Breaker.Cause? {
        switch breaker.state {
        case .open: nil
        case .halted(let cause): cause
        }
    }
    var sparesRegistrations: Bool { breaker.sparesRegistrations }

    // MARK: probes

    /// Whether a halted lane may probe.
    func mayProbe(_ instant: ContinuousClock.Instant) -> Bool {
        nextProbe.map { $0 <= instant } ?? false
    }

    /// A halted lane probes now; the next probe is a while off.
    mutating func probes(at instant: ContinuousClock.Instant) {
        if isHalted { nextProbe = instant + probeEvery }
    }

    /// Origins that were lately accepted.
    ///
    /// One whose probe was not accepted is asked no more before it is accepted again, so as many probes as
    /// there are such origins go before the first turn of the others.
    func lately(_ instant: ContinuousClock.Instant) -> ArraySlice<LateAcceptances.Known> {
        breaker.accepted.lately(instant)
    }

    /// Whether the probes that came back stand in their places again, from now on.
    mutating func endsTurns(_ instant: ContinuousClock.Instant) -> Bool {
        guard let turnsEnd, turnsEnd <= instant, !isHalted else { return false }
        self.turnsEnd = nil
        return true
    }

    // MARK: what halts it and lets it go

    /// Whether `note` should be told which origins wait in the lane before it judges a target fault.
    func asksWhoWaits(for push: OwedPush) -> Bool { breaker.isNearHalt && push.custody == .durable }

    /// An address that anybody can make up must not halt a lane that others send by: target faults of
    /// volatile pushes do not count. They blame no registration either, because there is none.
    ///
    /// - Parameter others: origins that wait in the lane.
    mutating func note(
        _ answer: Answer, of entry: LaneQueue.Entry, address: Int, others: [Digest16],
        at instant: ContinuousClock.Instant
    ) -> Breaker.Change {
        let push = entry.push
        if entry.isKnown, answer.outcome != .accepted { breaker.doubt(push.origin) }
        if push.custody == .volatile, Breaker.isTargetFault(answer) { return .none }
        // Open, it changes nothing by that.
        for origin in others { _ = breaker.heard(of: origin, at: instant) }
        let change = breaker.note(
            answer, address: address, origin: push.custody == .durable ? push.origin : nil, at: instant)
        switch change {
        case .halted: nextProbe = instant + probeEvery
        case .resumed: goOn(instant)
        case .none, .reopened: break
        }
        return change
    }

    /// A halt for which one or two origins spoke does not outlast the coming of another.
    ///
    /// - Returns: whether that ended it.
    mutating func hear(of push: OwedPush, at instant: ContinuousClock.Instant) -> Bool {
        guard isForTargets, push.custody == .durable,
            breaker.heard(of: push.origin, at: instant) == .reopened
        else { return false }
        goOn(instant)
        return true
    }

    /// Another lane of the same credential met its fault, or was accepted again.
    ///
    /// - Returns: whether that changed anything.
    mutating func credentialChanged(isFaulty: Bool, at instant: ContinuousClock.Instant) -> Bool {
        let before = breaker.state
        if isFaulty {
            breaker.haltForCredential()
            nextProbe = nextProbe ?? instant + probeEvery
        } else {
            breaker.resumeFromCredential()
            // A lane that its own target faults halted goes on probing.
            if !isHalted { goOn(instant) }
        }
        return breaker.state != before
    }

    /// The lane may send everything again. Probes that came back go last, or after a while: if one of them
    /// was what halted the lane, the others have gone until it does so again.
    private mutating func goOn(_ instant: ContinuousClock.Instant) {
        nextProbe = nil
        turnsEnd = instant + probesWait
    }
}
