import PushModel

/// What a lane knows of its push service, or of each of the authorities that its pushes name: whether it may
/// be sent to now. A value.
///
/// Answers about an authority that a push names do not count in the lane's own breaker, throttle and reach:
/// an authority that is out must not hold pushes to another. Answers about one address count in neither.
struct LaneHealth: Sendable {
    private var halt: LaneHalt
    private var throttle: Throttle
    private var reach: Reach
    private var destinations: Destinations
    private var addresses: AddressWaits
    private var suspicion: Suspicion
    /// The literal reason of the last answer that was no acceptance, until the next one.
    private(set) var lastFault: Reason?

    /// - Parameter isProven: the configuration is known to be the former one.
    init(limits: DeliveryLimits, isProven: Bool) {
        suspicion = Suspicion(isProven: isProven)
        halt = LaneHalt(limits: limits)
        reach = Reach(limits: limits)
        destinations = Destinations(limits: limits)
        throttle = Throttle(limits: limits)
        addresses = AddressWaits(limits: limits)
    }

    var isHalted: Bool { halt.isHalted }
    var haltedFor: Breaker.Cause? { halt.cause }
    /// A probe of the halted lane was told that the credential is for another environment alone.
    var isRefused: Bool { halt.isRefused }
    var isUnanswered: Bool { reach.isUnanswered }
    var heldDestinations: Int { destinations.held }
    var waitingAddresses: Int { addresses.refused }
    /// Sends in one tick; `nil`: no limit.
    var allowance: Int? { throttle.allowance }
    /// Whether pushes are tried one by one.
    var goesOneByOne: Bool { halt.isHalted || reach.isSilent }

    // MARK: sending

    func maySend(_ instant: ContinuousClock.Instant) -> Bool {
        guard throttle.maySend else { return false }
        return halt.isHalted ? halt.mayProbe(instant) : reach.mayTry(instant)
    }

    /// Origins that were lately accepted: a probe goes to one of them first.
    func lately(_ instant: ContinuousClock.Instant) -> ArraySlice<LateAcceptances.Known> {
        halt.lately(instant)
    }

    /// How long a push must wait for its destination or its address; `nil`: it may leave.
    mutating func wait(of entry: LaneQueue.Entry, at instant: ContinuousClock.Instant) -> Duration? {
        if let number = entry.destination {
            let mayDoubt = destinations.mayDoubt(number)
            let wait = destinations.change(number) {
                $0.wait(for: entry.push, at: instant, mayDoubt: mayDoubt)
            }
            if let wait { return wait }
        }
        return addresses.wait(
            for: entry.address, entry.push.pushClass, hasWaited: entry.hasWaited, at: instant)
    }

    mutating func sent(_ entry: LaneQueue.Entry, at instant: ContinuousClock.Instant) {
        halt.sent(at: instant)
        addresses.sent(to: entry.address)
        if let number = entry.destination { return destinations.change(number) { $0.sent(at: instant) } }
        throttle.sent()
        reach.sent(at: instant)
    }

    // MARK: answers

    /// Whether `note` should be told which origins wait in the lane before it judges that answer.
    func asksWhoWaits(_ answer: Answer, for entry: LaneQueue.Entry) -> Bool {
        guard Breaker.isTargetFault(answer) else { return false }
        return entry.destination != nil || halt.asksWhoWaits(for: entry.push)
    }

    /// What an answer tells of the lane, or of the push's destination alone, and of its address.
    ///
    /// - Parameters:
    ///   - others: origins that wait in the lane; `nil`: whether the answer blames the target is not known
    ///     yet (``judge(_:of:others:at:_:)``).
    ///   - isLate: the request was given up before and is no longer under way.
    ///   - moment: with the proofs of the lane's credential.
    ///   - random: 64 random bits.
    mutating func note(
        _ answer: Answer, of entry: LaneQueue.Entry, others: [Digest16]?, isLate: Bool = false,
        at moment: LaneMoment, random: UInt64, _ actions: inout LaneState.Actions
    ) {
        let instant = moment.instant
        actions.reason = answer.reason
        lastFault = answer.outcome.isAccepted ? nil : answer.reason
        if !isLate { addresses.ended(entry.address) }
        addresses.note(answer, of: entry.address, at: instant, random: random)
        if let number = entry.destination {
            // An answer of one authority is an answer of the service: an operator is told only if there is
            // none at all.
            if answer.isAnswered, reach.note(answer, at: instant, random: random) {
                actions.reach = .over
            }
            let few = destinations.change(number) { destination in
                if !isLate { destination.ended() }
                return destination.note(answer, address: entry.address, at: instant, random: random)
            }
            addresses.refuse(few, at: instant, random: random)
            if let others { judge(answer, of: entry, others: others, at: moment, &actions) }
            return
        }
        if reach.note(answer, at: instant, random: random) { actions.reach = .over }
        switch throttle.note(answer, address: entry.address) {
        case .none: break
        case .slowed: actions.pace = .slowed
        case .few(let few): addresses.refuse(few, at: instant, random: random)
        }
        if let others {
            judge(answer, of: entry, others: others, at: moment, &actions)
        } else if halt.heard(of: entry.push, at: instant) == .reopened {
            actions.breaker = .reopened
        }
        halt.hasten(after: answer, to: entry, at: instant)
    }

    /// What an answer tells of the credential and of targets.
    mutating func judge(
        _ answer: Answer, of entry: LaneQueue.Entry, others: [Digest16], at moment: LaneMoment,
        _ actions: inout LaneState.Actions
    ) {
        if let number = entry.destination {
            return destinations.change(number) {
                $0.judge(
                    answer, of: entry.push, address: entry.address, others: others, at: moment.instant)
            }
        }
        if entry.push.isDurable { suspicion.note(answer, address: entry.address) }
        let change = halt.note(
            answer, of: entry, others: others, proofs: moment.proofs, at: moment.instant)
        if change != .none { actions.breaker = change }
        actions.reason = answer.reason
    }

    /// Whether its destination, or the lane, is halted for its credential.
    mutating func isHaltedForCredential(_ entry: LaneQueue.Entry) -> Bool {
        guard let number = entry.destination else { return halt.cause == .credential }
        return destinations.change(number) { $0.breaker.state == .halted(.credential) }
    }

    /// Whether its destination, or the lane, meets so many target faults that no registration may be blamed.
    mutating func sparesRegistrations(of entry: LaneQueue.Entry) -> Bool {
        guard let number = entry.destination else {
            return halt.sparesRegistrations || suspicion.doubt != nil
        }
        return destinations.change(number) { $0.breaker.sparesRegistrations }
    }

    /// A push was accepted under the same configuration before this process began.
    mutating func prove() { suspicion.prove() }

    /// Why a registration was spared, if that was not reported since the last acceptance.
    mutating func newsOfSparing() -> Suspicion.Doubt? { suspicion.news() }

    /// Whether its destination, or the service, has answered something among so many sends.
    mutating func speaks(to entry: LaneQueue.Entry, among sends: Int) -> Bool {
        guard let number = entry.destination else { return reach.speaks(among: sends) }
        return destinations.change(number) { $0.speaks(among: sends) }
    }

    // MARK: other events

    /// Pushes come: a halt with one or two origins as witnesses ends when another origin comes.
    ///
    /// - Returns: whether that ended it.
    mutating func hear(of entries: [LaneQueue.Entry], at instant: ContinuousClock.Instant) -> Bool {
        guard halt.hearsOfOrigins else { return false }
        return entries.contains { halt.hear(of: $0.push, at: instant) }
    }

    /// True when from this tick on nothing is held back any more.
    mutating func tick(at instant: ContinuousClock.Instant) -> Bool {
        destinations.tick()
        addresses.tick(at: instant)
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
    /// - Returns: whether an operator was told of a silence, which is now over.
    mutating func end() -> Bool { reach.end() }
}
