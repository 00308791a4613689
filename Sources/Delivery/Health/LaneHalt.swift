import PushModel

/// Whether a lane is halted, and when it probes (decision 0048). A value.
struct LaneHalt: Sendable {
    private var breaker: Breaker
    private var probes: ProbePace
    /// A probe of the halted lane was told that the credential is for another environment alone.
    private(set) var isRefused = false
    /// The last probe of a lane that is halted for its credential was the last of so many target faults as
    /// would have halted it too.
    private var blamesTargets = false
    /// When the probes that came back stand in their places again.
    private var turnsEnd: ContinuousClock.Instant?
    /// How long probes that came back wait for others when the lane goes on.
    private let probesWait: Duration

    init(limits: DeliveryLimits) {
        probes = ProbePace(limits: limits)
        probesWait = limits.backoffBase
        breaker = Breaker(
            answers: limits.breakerAnswers, addresses: limits.breakerAddresses,
            witnesses: limits.breakerWitnesses, memory: limits.originsRemembered,
            faults: (limits.breakerFaults, limits.breakerFaultsBesideProof))
    }

    var isHalted: Bool { breaker.state != .open }
    private var isForTargets: Bool { breaker.state == .halted(.targets) }
    /// Whether it matters to the halt whose pushes come.
    var hearsOfOrigins: Bool { isForTargets || blamesTargets }
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
    func mayProbe(_ instant: ContinuousClock.Instant) -> Bool { probes.wait(at: instant) == nil }

    /// A push leaves: from a halted lane it is a probe, and the next probe waits.
    mutating func sent(at instant: ContinuousClock.Instant) { if isHalted { probes.sent(at: instant) } }

    /// A probe was answered, and ``note(_:of:others:proofs:at:)`` has heard it, if it is to. Only what halted
    /// the lane makes the next ones rarer: an answer that does not blame the credential of a lane that is
    /// halted for it proves nothing, but refuses nothing either, and what is refused here asks nobody. Then
    /// the next one leaves as after the first fault: else each dead token, and each address that somebody
    /// makes up, would cost everybody else a minute.
    ///
    /// Not where the service blames so many targets that they would halt an open lane: there each probe costs
    /// a push, and what is refused here only gives its turn to the next.
    mutating func hasten(
        after answer: Answer, to probe: LaneQueue.Entry, at instant: ContinuousClock.Instant
    ) {
        guard isHalted, probe.isProbe else { return }
        if answer.fate == .local {
            // Our own store is out; the service may have been asked.
            if case .retry = answer.outcome { return }
            return hearsOfOrigins ? probes.giveBack(at: instant) : probes.hasten(at: instant)
        }
        guard cause == .credential, answer.isAnswered, !Breaker.isCredentialFault(answer) else { return }
        blamesTargets = Breaker.isTargetFault(answer) && breaker.blamesTargets(at: instant)
        if !blamesTargets { probes.hasten(at: instant) }
    }

    /// Origins that were lately accepted.
    ///
    /// An origin whose probe was not accepted gets no further probe until it is accepted again, so each such
    /// origin gets one probe before the first turn of the others.
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
    func asksWhoWaits(for push: OwedPush) -> Bool { breaker.isNearHalt && push.isDurable }

    /// An address that anybody can make up must not halt a lane that others send by: target faults of
    /// volatile pushes do not count. They blame no registration either, because there is none.
    ///
    /// - Parameters:
    ///   - others: origins that wait in the lane.
    ///   - proofs: of the credential, in this lane and in others of its environment, so far.
    mutating func note(
        _ answer: Answer, of entry: LaneQueue.Entry, others: [Digest16], proofs: Int,
        at instant: ContinuousClock.Instant
    ) -> Breaker.Change {
        let push = entry.push
        if entry.isKnown, !answer.outcome.isAccepted { breaker.doubt(push.origin) }
        if push.isVolatile, Breaker.isTargetFault(answer) { return .none }
        // If the lane is open, this changes nothing.
        for origin in others { _ = breaker.heard(of: origin, at: instant) }
        let change = breaker.note(
            answer, address: entry.address, origin: push.isDurable ? push.origin : nil,
            proofs: proofs, at: instant)
        switch change {
        case .halted:
            probes.begin(at: instant)
            blamesTargets = false
        case .resumed: goOn(instant)
        case .none, .reopened: break
        }
        if cause == .credential, entry.isProbe, answer.isAnswered {
            isRefused = answer.reason.meaning.contains(.isForOtherEnvironment)
        }
        return change
    }

    /// The service answered a push that goes on elsewhere: this shows only that the app has its origin.
    mutating func heard(of push: OwedPush, at instant: ContinuousClock.Instant) -> Breaker.Change {
        guard push.isDurable else { return .none }
        let change = breaker.heard(of: push.origin, at: instant)
        if change == .reopened { goOn(instant) }
        return change
    }

    /// A halt for which one or two origins spoke does not outlast the coming of another. One for the
    /// credential does, but target faults of one or two make its probes rare no longer.
    ///
    /// - Returns: whether that ended it.
    mutating func hear(of push: OwedPush, at instant: ContinuousClock.Instant) -> Bool {
        guard hearsOfOrigins else { return false }
        if heard(of: push, at: instant) == .reopened { return true }
        if blamesTargets, !breaker.blamesTargets(at: instant) {
            blamesTargets = false
            probes.hasten(at: instant)
        }
        return false
    }

    /// The lane may send everything again. Probes that came back go last, or after a while: if one of them
    /// caused the halt, the other pushes have left before it does so again.
    private mutating func goOn(_ instant: ContinuousClock.Instant) {
        probes.end()
        (isRefused, blamesTargets) = (false, false)
        turnsEnd = instant + probesWait
    }
}

/// When what is halted probes: after a second, then after twice as long each time, up to a minute; anew after
/// an answer that says nothing of what halted it (``LaneHalt``). A value.
struct ProbePace: Sendable {
    private var next: ContinuousClock.Instant?
    /// Between the next probe and the one after it.
    private var span: Duration
    /// The same before the last probe left.
    private var former: Duration
    private let first: Duration
    private let most: Duration

    init(limits: DeliveryLimits) {
        first = min(limits.probeFirst, limits.probeEvery)
        most = limits.probeEvery
        (span, former) = (first, first)
    }

    /// `nil`: a probe may leave now.
    func wait(at instant: ContinuousClock.Instant) -> Duration? {
        guard let next, next > instant else { return nil }
        return next - instant
    }

    /// A halt begins.
    mutating func begin(at instant: ContinuousClock.Instant) {
        span = first
        sent(at: instant)
    }

    /// A probe leaves.
    mutating func sent(at instant: ContinuousClock.Instant) {
        former = span
        next = instant + span
        span = min(span * 2, most)
    }

    /// The next probe leaves as if the halt began now, or when it would have left, if that is sooner.
    mutating func hasten(at instant: ContinuousClock.Instant) {
        next = min(next ?? instant, instant + first)
        span = min(first * 2, most)
    }

    /// The last probe asked nobody: another leaves soon, and those behind it are as rare as they were.
    mutating func giveBack(at instant: ContinuousClock.Instant) {
        next = min(next ?? instant, instant + first)
        span = former
    }

    mutating func end() { (next, span, former) = (nil, first, first) }
}
