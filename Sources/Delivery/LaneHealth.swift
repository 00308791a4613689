import PushModel

/// What a lane knows of its push service, or of each of the authorities that its pushes name: whether it may
/// be sent to now. A value.
///
/// The lane's own breaker, throttle and reach are about no authority that a push names: one that is out must
/// not hold what goes to another.
struct LaneHealth: Sendable {
    private var halt: LaneHalt
    private var throttle: Throttle
    private var reach: Reach
    private var destinations: Destinations
    /// The literal reason of the last answer that was no acceptance, until the next one.
    private(set) var lastFault: Reason?

    init(limits: DeliveryLimits) {
        halt = LaneHalt(limits: limits)
        reach = Reach(limits: limits)
        destinations = Destinations(limits: limits)
        throttle = Throttle(refusals: limits.throttleRefusals, open: limits.lanePushes)
    }

    var isHalted: Bool { halt.isHalted }
    var haltedFor: Breaker.Cause? { halt.cause }
    var isUnanswered: Bool { reach.isUnanswered }
    var heldDestinations: Int { destinations.held }
    /// Sends in one tick; `nil`: as many as go.
    var allowance: Int? { throttle.allowance }
    /// What may leave is tried push by push.
    var goesOneByOne: Bool { halt.isHalted || reach.isSilent }

    // MARK: sending

    func maySend(_ instant: ContinuousClock.Instant) -> Bool {
        guard throttle.maySend else { return false }
        return halt.isHalted ? halt.mayProbe(instant) : reach.mayTry(instant)
    }

    /// A halted lane probes now; the next probe is a while off.
    mutating func probes(at instant: ContinuousClock.Instant) { halt.probes(at: instant) }

    /// Origins that were lately accepted: a probe goes to one of them first.
    func lately(_ instant: ContinuousClock.Instant) -> ArraySlice<LateAcceptances.Known> {
        halt.lately(instant)
    }

    /// How long a push must wait for its destination; `nil`: it may leave.
    mutating func wait(of entry: LaneQueue.Entry, at instant: ContinuousClock.Instant) -> Duration? {
        guard let number = entry.destination else { return nil }
        return destinations.change(number) { $0.wait(for: entry.push, at: instant) }
    }

    mutating func sent(_ entry: LaneQueue.Entry, at instant: ContinuousClock.Instant) {
        if let number = entry.destination { return destinations.change(number) { $0.sent(at: instant) } }
        throttle.sent()
        reach.sent(at: instant)
    }

    /// A push is under way no more.
    mutating func ended(_ entry: LaneQueue.Entry) {
        if let number = entry.destination { destinations.change(number) { $0.ended() } }
    }

    // MARK: answers

    /// Whether `note` should be told which origins wait in the lane before it judges that answer.
    func asksWhoWaits(_ answer: Answer, for entry: LaneQueue.Entry) -> Bool {
        guard Breaker.isTargetFault(answer) else { return false }
        return entry.destination != nil || halt.asksWhoWaits(for: entry.push)
    }

    /// What an answer tells of the lane, or of the push's destination alone.
    ///
    /// - Parameters:
    ///   - others: origins that wait in the lane.
    ///   - random: 64 random bits.
    /// - Returns: what it changes for the one that it is about. The lane's own change is among the actions.
    mutating func note(
        _ answer: Answer, of entry: LaneQueue.Entry, others: [Digest16],
        at instant: ContinuousClock.Instant, random: UInt64, _ actions: inout LaneState.Actions
    ) -> Breaker.Change {
        actions.reason = answer.reason
        lastFault = answer.outcome == .accepted ? nil : answer.reason
        let address = entry.push.message.addressNumber
        if let number = entry.destination {
            // A word of one is a word of the service: an operator hears when there is none at all.
            if answer.fate == .answered, reach.note(answer, at: instant, random: random) {
                actions.reach = .over
            }
            return destinations.change(number) {
                $0.note(
                    answer, of: entry.push, address: address, others: others, at: instant, random: random)
            }
        }
        actions.breaker = halt.note(answer, of: entry, address: address, others: others, at: instant)
        if reach.note(answer, at: instant, random: random) { actions.reach = .over }
        if throttle.note(answer) { actions.pace = .slowed }
        return actions.breaker
    }

    /// Whether its destination, or the lane, meets so many target faults that no registration may be blamed.
    mutating func sparesRegistrations(of entry: LaneQueue.Entry) -> Bool {
        guard let number = entry.destination else { return halt.sparesRegistrations }
        return destinations.change(number) { $0.breaker.sparesRegistrations }
    }

    // MARK: other events

    /// Pushes come: a halt for which one or two origins spoke does not outlast the coming of another.
    ///
    /// - Returns: whether that ended it.
    mutating func hear(of entries: [LaneQueue.Entry], at instant: ContinuousClock.Instant) -> Bool {
        guard halt.isForTargets else { return false }
        return entries.contains { halt.hear(of: $0.push, at: instant) }
    }

    /// Another lane of the same credential met its fault, or was accepted again.
    ///
    /// - Returns: whether that changed anything.
    mutating func credentialChanged(isFaulty: Bool, at instant: ContinuousClock.Instant) -> Bool {
        halt.credentialChanged(isFaulty: isFaulty, at: instant)
    }

    /// True when from this tick on nothing is held back any more.
    mutating func tick() -> Bool {
        destinations.tick()
        return throttle.tick()
    }

    /// Whether the probes that came back stand in their places again, from now on.
    mutating func endsTurns(_ instant: ContinuousClock.Instant) -> Bool { halt.endsTurns(instant) }

    /// Whether the service has been silent for so long that a person should know.
    mutating func tick(_ work: Reach.Work, at instant: ContinuousClock.Instant) -> Reach.News {
        reach.tick(work, at: instant)
    }

    /// Nobody sends any more.
    ///
    /// - Returns: whether an operator was told of a silence, which is nobody's concern now.
    mutating func end() -> Bool { reach.end() }
}
