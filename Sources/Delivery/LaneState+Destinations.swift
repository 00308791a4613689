import PushModel

/// What a lane does with pushes that name the authority to which they go. The lane's own breaker, throttle
/// and reach are about none of these: one that is out must not hold what goes to another.
extension LaneState {
    /// How long it must wait for its destination; `nil`: it may leave.
    mutating func wait(of entry: LaneQueue.Entry, at instant: ContinuousClock.Instant) -> Duration? {
        guard let number = entry.destination else { return nil }
        return destinations.change(number) { $0.wait(for: entry.push, at: instant) }
    }

    mutating func noteSent(_ entry: LaneQueue.Entry, at instant: ContinuousClock.Instant) {
        if let number = entry.destination { return destinations.change(number) { $0.sent(at: instant) } }
        throttle.sent()
        reach.sent(at: instant)
    }

    /// What was taken waits for its destination: a short while in memory, as long as such pushes do not fill
    /// it, else in the store.
    mutating func holdBack(
        _ entry: LaneQueue.Entry, for wait: Duration, now: UnixTime, _ actions: inout Actions
    ) {
        var entry = entry
        entry.push.notBefore = now + wait
        if wait <= keepRetryWithin, queue.count * 4 <= queue.limit { return queue.putToSleep(entry) }
        if entry.push.custody == .volatile { return shelve(entry, &actions) }
        entry.push.notBefore = now + max(wait, retryClaim)
        let push = entry.push
        if entry.isFirst { actions.first.append((push.id, .pending)) }
        let step = Settlement.Step.retry(
            notBefore: push.notBefore, attempt: push.attempt, lane: push.lane, parked: true)
        actions.settle.append(
            Settler.Item(settlement: Settlement(push, step, first: entry.unwritten)))
    }

    /// What an answer tells of the lane, or of the push's destination alone.
    ///
    /// - Returns: what it changes for the one that it is about. The lane's own change is among the actions.
    mutating func note(
        _ answer: Answer, of entry: LaneQueue.Entry, address: Int, at instant: ContinuousClock.Instant,
        probeEvery: Duration, random: UInt64, _ actions: inout Actions
    ) -> Breaker.Change {
        actions.reason = answer.reason
        lastFault = answer.outcome == .accepted ? nil : answer.reason
        if let number = entry.destination {
            // A word of one is a word of the service: an operator hears when there is none at all.
            if answer.fate == .answered, reach.note(answer, at: instant, random: random) {
                actions.reach = .over
            }
            let others = Breaker.isTargetFault(answer) ? waitingOrigins : []
            return destinations.change(number) {
                $0.note(
                    answer, of: entry.push, address: address, others: others, at: instant, random: random)
            }
        }
        actions.breaker = judge(
            answer, of: entry.push, address: address, isKnown: entry.isKnown, at: instant)
        if reach.note(answer, at: instant, random: random) { actions.reach = .over }
        if throttle.note(answer) { actions.pace = .slowed }
        switch actions.breaker {
        case .halted: nextProbe = instant + probeEvery
        case .resumed: goOn(instant)
        case .none, .reopened: break
        }
        return actions.breaker
    }

    /// Whether its destination, or the lane, meets so many target faults that no registration may be blamed.
    mutating func sparesRegistrations(of entry: LaneQueue.Entry) -> Bool {
        guard let number = entry.destination else { return breaker.sparesRegistrations }
        return destinations.change(number) { $0.breaker.sparesRegistrations }
    }
}
