import PushModel

/// A moment, as both clocks show it and as far as the wall clock is believed.
struct LaneMoment: Sendable {
    let now: UnixTime
    let instant: ContinuousClock.Instant
    let clock: DoubtedClock.Reading
    /// How often the lane's credential has proved good, in this lane and in others of its environment.
    var proofs = 0
}

extension LaneState {
    /// What the lane must do after an event.
    struct Actions: Sendable {
        /// Steps for the settler.
        var settle = Few<Settler.Item>()
        /// There is something to send, or to wait for.
        var wakesSender = false
        /// The store may be asked for parked pushes.
        var wakesRefill = false
        /// Pushes whose first outcome is now known.
        var first = Few<(PushID, FirstOutcome)>()
        var breaker = Breaker.Change.none
        var pace = PaceChange.none
        var reach = Reach.News.none
        var reason = Reason.ok
        /// Pushes whose custody ended unsent.
        var custodyEnded = 0
        /// Calls that may have rung, and are not sent again.
        var spentCalls = 0
        /// Other pushes that may have arrived, and are not sent again.
        var givenUp = 0
        /// Volatile pushes that nobody owes any more.
        var volatileEnded = 0
        /// Those of them that were given up, for want of room or of time.
        var volatileDropped = 0
        /// Pushes that went back to the store because the lease had run out.
        var ranOut = 0
        /// A registration was spared, and the reason has not been reported yet.
        var spared: Suspicion.Doubt?
        /// Pushes that end with the answer of the lane that they came from. They count as under way here
        /// until they have ended.
        var returned: [LaneQueue.Entry] = []
    }

    enum PaceChange: Sendable { case none, slowed, atFullSpeed }
}

extension LaneState.Actions {
    /// What follows from a further step of the same event.
    mutating func join(_ next: LaneState.Actions) {
        settle += next.settle
        wakesSender = wakesSender || next.wakesSender
        wakesRefill = wakesRefill || next.wakesRefill
        first += next.first
        if next.breaker != .none { breaker = next.breaker }
        if next.pace != .none { pace = next.pace }
        if next.reach != .none { reach = next.reach }
        custodyEnded += next.custodyEnded
        spentCalls += next.spentCalls
        givenUp += next.givenUp
        volatileEnded += next.volatileEnded
        volatileDropped += next.volatileDropped
        ranOut += next.ranOut
        spared = next.spared ?? spared
        returned += next.returned
    }

    /// Volatile pushes are given up.
    mutating func drop(_ count: Int) {
        volatileEnded += count
        volatileDropped += count
    }

    /// A durable push goes back to the store. It counts as parked once the store has said so.
    mutating func giveBack(_ entry: LaneQueue.Entry) {
        if entry.isFirst { first.append((entry.push.id, .pending)) }
        let push = entry.push
        let step: Settlement.Step =
            entry.isMoved || entry.unwritten != nil
            ? .retry(
                notBefore: push.notBefore, attempt: push.attempts.stored, lane: push.lane, parked: true)
            : .park
        settle.append(Settler.Item(Settlement(push, step, first: entry.unwritten)))
    }

    /// A durable push waits in the store until then.
    mutating func putOff(_ entry: LaneQueue.Entry, until due: UnixTime, _ attempts: Attempts) {
        if entry.isFirst { first.append((entry.push.id, .pending)) }
        var push = entry.push
        push.notBefore = due
        let step = Settlement.Step.retry(
            notBefore: due, attempt: attempts.stored, lane: push.lane, parked: true)
        settle.append(Settler.Item(Settlement(push, step, first: entry.unwritten)))
    }

    /// Custody of a push has ended, and it was not sent.
    mutating func end(_ entry: LaneQueue.Entry) {
        custodyEnded += 1
        guard entry.push.isDurable else {
            volatileEnded += 1
            return
        }
        let reason = OutcomeKind.rejected
        if entry.isFirst { first.append((entry.push.id, .known(reason))) }
        let word = entry.isFirst ? reason : entry.unwritten
        settle.append(Settler.Item(Settlement(entry.push, .settle, first: word)))
    }
}
