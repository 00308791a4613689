import PushModel

/// What a lane does with pushes that stand in its memory only.
extension LaneState {
    /// Between attempts while a stop drains, at most: five in the ten seconds that it takes.
    private static let drainRetry: Duration = .seconds(2)

    /// Moves the times of volatile pushes along with a wall clock that was set: they are owed for a span, and
    /// no other process reads them. Those in the store keep theirs, which outlive this process.
    mutating func heed(_ now: UnixTime, _ instant: ContinuousClock.Instant) {
        guard wallClock.wasSet(now, instant) else { return }
        for entry in queue.remove(where: { $0.push.custody == .volatile }) {
            _ = queue.admit(wallClock.moved(entry), now: now)
        }
        // To the shelf nothing is due yet, as below.
        for entry in shelf.remove(where: { _ in true }) {
            _ = shelf.admit(wallClock.moved(entry), now: .distantPast)
        }
    }

    /// Lays an entry aside. It stays in memory, or is dropped and counted.
    mutating func shelve(_ entry: LaneQueue.Entry, _ actions: inout Actions) {
        guard !isOver else { return drop(1, &actions) }
        // To the shelf nothing is due yet; `unshelve` looks at the clock.
        switch shelf.admit(entry, now: .distantPast) {
        case .held: break
        case .displaced, .parked: drop(1, &actions)
        }
    }

    /// Only into a queue that is half empty, so that what is laid aside does not push back what is durable.
    var canUnshelve: Bool { queue.count * 2 <= queue.limit }

    /// Takes from the shelf what is due, while the queue has room.
    mutating func unshelve(now: UnixTime) {
        guard !shelf.isEmpty else { return }
        shelf.wake(now: now, within: longestWait)
        while canUnshelve, let entry = shelf.take() { _ = queue.admit(entry, now: now) }
    }

    /// Without a lease what is durable has left the queue; the rest may go.
    mutating func takeVolatile(
        now: UnixTime, instant: ContinuousClock.Instant, _ limits: DeliveryLimits
    ) -> (entry: LaneQueue.Entry?, actions: Actions) {
        var dropped = dropMemory()
        let (entry, actions) = take(
            now: now, instant: instant, probeEvery: limits.probeEvery, isLeased: false)
        dropped.settle += actions.settle
        dropped.first += actions.first
        dropped.custodyEnded += actions.custodyEnded
        dropped.volatileEnded += actions.volatileEnded
        return (entry, dropped)
    }

    mutating func noteAnswer(of entry: LaneQueue.Entry) {
        inFlight -= 1
        answersInTick += 1
        if entry.push.custody == .volatile { volatileInFlight -= 1 }
        if let number = entry.destination { destinations.change(number) { $0.ended() } }
    }

    /// An address that anybody can make up must not halt a lane that others send by: target faults of
    /// volatile pushes do not count. They blame no registration either, because there is none.
    ///
    /// - Parameter isKnown: it was a probe to somebody who had lately been accepted.
    mutating func judge(
        _ answer: Answer, of push: OwedPush, address: Int, isKnown: Bool = false,
        at instant: ContinuousClock.Instant
    ) -> Breaker.Change {
        if isKnown, answer.outcome != .accepted { breaker.doubt(push.origin) }
        if Breaker.isTargetFault(answer) {
            if push.custody == .volatile { return .none }
            if breaker.isNearHalt { nameWaitingOrigins(instant) }
        }
        return breaker.note(
            answer, address: address, origin: push.custody == .durable ? push.origin : nil, at: instant)
    }

    /// What an answer means for a volatile push: there is no row to settle.
    mutating func apply(
        _ judged: Judgement, toVolatile entry: LaneQueue.Entry, _ now: UnixTime, _ actions: inout Actions
    ) {
        switch judged.step {
        case nil: putBack(entry, now: now, &actions)
        case .retry(let notBefore, let attempt, _, let parked)?:
            var again = entry
            // While a stop drains, a retry that is further off would be none.
            again.push.notBefore = isStopping ? min(notBefore, now + Self.drainRetry) : notBefore
            again.push.attempt = attempt
            if parked || isStopping || queue.count >= queue.limit {
                shelve(again, &actions)
            } else {
                _ = queue.admit(again, now: now)
            }
        case .settle?, .withdraw?, .park?:
            actions.volatileEnded += 1
            if judged.custodyEnds { actions.custodyEnded += 1 }
            if judged.isSpentCall { actions.spentCalls += 1 }
        }
    }

    /// Nothing more is taken from the store, and what is the store's goes back to it. What is volatile is
    /// tried once more at once, however far off its next attempt was: no other will be made.
    mutating func stop(drainUntil: ContinuousClock.Instant, now: UnixTime) -> Actions {
        guard !isStopping else { return dropMemory() }
        isStopping = true
        self.drainUntil = drainUntil
        let actions = dropMemory()
        for var entry in queue.remove(where: { _ in true }) + shelf.remove(where: { _ in true }) {
            entry.push.notBefore = min(entry.push.notBefore, now)
            // Together they are no more than the shelf holds.
            _ = shelf.admit(entry, now: .distantPast)
        }
        unshelve(now: now)
        return actions
    }

    /// Whether a lane that stops has sent what is volatile, or cannot, or may wait no longer.
    func isDrained(_ instant: ContinuousClock.Instant) -> Bool {
        if queue.isEmpty && shelf.isEmpty && volatileInFlight == 0 { return true }
        return isHalted || drainUntil.map { $0 <= instant } ?? true
    }

    /// The end: nobody sends any more.
    mutating func finish() -> Actions {
        isOver = true
        var actions = dropMemory()
        if reach.end() { actions.reach = .over }
        let left = queue.remove { _ in true }.count + shelf.remove { _ in true }.count
        if left > 0 { drop(left, &actions) }
        return actions
    }

    private func drop(_ count: Int, _ actions: inout Actions) {
        actions.volatileEnded += count
        actions.volatileDropped += count
    }
}
