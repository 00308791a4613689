import PushModel

/// What one lane knows: its queue, its breaker, what waits in the store. A value; events in, actions out.
struct LaneState: Sendable {
    /// What the lane's loops must do after an event.
    struct Actions: Sendable {
        /// Steps for the settler.
        var settle: [Settler.Item] = []
        /// There is something to send, or to wait for.
        var wakesSender = false
        /// The store may be asked for parked pushes.
        var wakesRefill = false
        /// Pushes whose first outcome is now known.
        var first: [(PushID, FirstOutcome)] = []
        var breaker = Breaker.Change.none
        var pace = PaceChange.none
        var reason = Reason.ok
        /// Pushes whose custody ended unsent.
        var custodyEnded = 0
        /// Volatile pushes that nobody owes any more.
        var volatileEnded = 0
        /// Those of them that were given up, for want of room or of time.
        var volatileDropped = 0
    }

    enum PaceChange: Sendable { case none, slowed, atFullSpeed }

    var queue: LaneQueue
    /// Volatile pushes for which the queue has no room, or whose next attempt is far off. Durable ones wait
    /// in the store instead.
    var shelf: LaneQueue
    var volatileInFlight = 0
    var wallClock = WallClock()
    /// Until when a lane that stops sends what is volatile.
    var drainUntil: ContinuousClock.Instant?
    /// What custody ends by instead of a wall clock that is in doubt; `nil`: it is believed.
    var doubted: DoubtedClock.Reading?
    /// The lane has ended: what comes now is too late.
    var isOver = false
    var breaker: Breaker
    var throttle: Throttle
    /// Parked rows in the store, as far as this process knows.
    var parked = 0
    /// Not before then is the store asked again for parked pushes.
    var claimNotBefore: UnixTime = .distantPast
    var isClaiming = false
    /// Rows that were parked since the claim under way began.
    private var parkedSinceClaim = 0
    /// The lease's term that the queue was filled in.
    var term = 0
    var nextProbe: ContinuousClock.Instant?
    var inFlight = 0
    var isStopping = false
    /// All that is durable goes back to the store, and none comes from it (``Reclaim``).
    var handsBack = false
    /// Nothing durable stays in memory.
    var keepsNothing: Bool { isStopping || handsBack }
    var lastFault: Reason?
    /// Answers per second, smoothed, for the estimate of a wait.
    var rate = 0.0
    var answersInTick = 0
    private let claimRows: Int
    /// No back-off and no push service puts a push off for longer.
    let longestWait: Duration
    private let tickSpan: Duration

    init(limits: DeliveryLimits) {
        claimRows = limits.claimRows
        longestWait = max(limits.retryAfterCap, limits.backoffCap)
        tickSpan = limits.tick
        throttle = Throttle(refusals: limits.throttleRefusals, open: limits.lanePushes)
        queue = LaneQueue(limit: limits.lanePushes)
        shelf = LaneQueue(limit: limits.volatilePushes)
        breaker = Breaker(answers: limits.breakerAnswers, addresses: limits.breakerAddresses)
    }

    var isHalted: Bool { breaker.state != .open }
    var backlog: Int { queue.count + parked }

    /// How long a push that comes now would wait; `nil` when nobody can say.
    func expectedWait() -> Duration? {
        guard !isHalted, !isStopping else { return nil }
        let ahead = queue.readyCount + parked
        if let allowance = throttle.allowance { return tickSpan * (ahead / allowance) }
        if ahead <= 1_000 { return .zero }
        guard rate > 0 else { return nil }
        // The rate of a lane that gets no answers comes as near to nothing as a number can.
        let seconds = Double(ahead) / rate
        return seconds < Double(longestWait.components.seconds) ? .seconds(seconds) : longestWait
    }

    /// Takes pushes in. What finds no room goes back to the store, which has it already.
    mutating func admit(_ entries: [LaneQueue.Entry], now: UnixTime) -> Actions {
        var actions = Actions()
        // Hardly ever: most machines' clocks are never set.
        let entries = wallClock.shift == .zero ? entries : entries.map(wallClock.stamped)
        guard !keepsNothing else {
            // Nobody sends here any more, or not now; whoever does next finds them in the store.
            for entry in entries { park(entry, &actions) }
            actions.wakesSender = !shelf.isEmpty
            return actions
        }
        for entry in entries {
            switch queue.admit(entry, now: now) {
            case .held: break
            case .displaced(let displaced): park(displaced, &actions)
            case .parked(let entry): park(entry, &actions)
            }
        }
        actions.wakesSender = true
        return actions
    }

    /// Pushes that the store holds as parked, the first of them due then.
    mutating func noteParked(_ count: Int, due: UnixTime) {
        guard count > 0 else { return }
        parked += count
        parkedSinceClaim += count
        claimNotBefore = min(claimNotBefore, due)
    }

    /// The store's own count.
    mutating func correct(parked count: Int) {
        // More than we know of came by another way: from a dead process, or from a lane before this one.
        if count > parked { claimNotBefore = .distantPast }
        parked = count
    }

    /// How many pushes a claim may bring now; `nil` unless one was called for.
    mutating func beginClaim() -> Int? {
        guard isClaiming else { return nil }
        parkedSinceClaim = 0
        claimNotBefore = .distantFuture
        return min(max(queue.limit - queue.count, 1), claimRows)
    }

    /// - Parameter next: when the store may be asked again.
    /// - Parameter isLast: nothing is parked beside what was claimed and what came meanwhile. What we do not
    ///   know to be gone is asked for once more.
    mutating func endClaim(of count: Int, next: UnixTime, isLast: Bool) {
        isClaiming = false
        parked = isLast ? parkedSinceClaim : max(parked - count, 1)
        claimNotBefore = min(claimNotBefore, next)
    }

    /// The next push to send, if the lane may send; custody that has ended is settled on the way.
    ///
    /// - Parameter isLeased: false asks the store for nothing more.
    mutating func take(
        now: UnixTime, instant: ContinuousClock.Instant, probeEvery: Duration, isLeased: Bool = true
    ) -> (entry: LaneQueue.Entry?, actions: Actions) {
        var actions = Actions()
        guard mayTake(instant) else { return (nil, actions) }
        heed(now, instant)
        if isHalted {
            guard let probe = nextProbe, probe <= instant else { return (nil, actions) }
            nextProbe = instant + probeEvery
        }
        queue.wake(now: now, within: longestWait)
        unshelve(now: now)
        while let entry = queue.take() {
            guard entry.term == term || entry.push.custody == .volatile else {
                // Asked for, or sent, in an earlier term, and here only now.
                park(entry, &actions)
                continue
            }
            guard entry.push.custodyEnds > custodyTime(of: entry.push, now) else {
                end(entry, reason: .rejected, &actions)
                continue
            }
            inFlight += 1
            if entry.push.custody == .volatile { volatileInFlight += 1 }
            throttle.sent()
            if isLeased { refillIfLow(now: now, &actions) }
            return (entry, actions)
        }
        if isLeased { refillIfLow(now: now, &actions) }
        return (nil, actions)
    }

    /// Whether `take` could give something now.
    func hasWork(now: UnixTime, instant: ContinuousClock.Instant) -> Bool {
        guard mayTake(instant) else { return false }
        if isHalted { guard let probe = nextProbe, probe <= instant else { return false } }
        return queue.hasDue(now) || (canUnshelve && shelf.hasDue(now))
    }

    /// A lane that stops sends no more than what is volatile: all else has left its queue.
    private func mayTake(_ instant: ContinuousClock.Instant) -> Bool {
        guard throttle.maySend else { return false }
        return !isStopping || drainUntil.map { instant < $0 } ?? false
    }

    /// The tick: retries that are due, custody that has ended, the store's parked pushes.
    ///
    /// - Parameter isLeased: false gives all memory back, for by now the rows may be another's.
    mutating func tick(
        now: UnixTime, instant: ContinuousClock.Instant, seconds: Double, isLeased: Bool
    ) -> Actions {
        // Only while something waits does the lane show how fast it is; else the rate is that of what came.
        let present = Double(answersInTick) / seconds
        rate = queue.readyCount + parked > 0 ? rate * 0.8 + present * 0.2 : max(rate, present)
        answersInTick = 0
        let pace = throttle.tick() ? PaceChange.atFullSpeed : .none
        var actions = isLeased ? Actions() : dropMemory()
        actions.pace = pace
        heed(now, instant)
        queue.wake(now: now, within: longestWait)
        for entry in removeEnded(now) { end(entry, reason: .rejected, &actions) }
        for entry in shelf.removeEnded(now: now) { end(entry, reason: .rejected, &actions) }
        unshelve(now: now)
        if isLeased { refillIfLow(now: now, &actions) }
        actions.wakesSender = hasWork(now: now, instant: instant)
        return actions
    }

    /// The time that says whether custody of a push has ended. Volatile pushes move with the clock
    /// (``WallClock``), for none is older than this process.
    func custodyTime(of push: OwedPush, _ now: UnixTime) -> UnixTime {
        guard let doubted, push.custody == .durable else { return now }
        return min(now, doubted.end(of: push.id.acceptedAt))
    }

    private mutating func removeEnded(_ now: UnixTime) -> [LaneQueue.Entry] {
        guard let doubted else { return queue.removeEnded(now: now) }
        let ended = queue.remove { entry in
            let time = entry.push.custody == .durable ? doubted.end(of: entry.push.id.acceptedAt) : now
            return entry.push.custodyEnds <= min(now, time)
        }
        queue.forgetCustody()
        return ended
    }

    /// The lease has run out: another process may own these rows by now. They go back to the store, which
    /// changes nothing where they are no longer ours. Volatile pushes have no row and stay.
    ///
    /// - Parameter term: what came in this one stays too, for it is ours.
    mutating func dropMemory(keeping term: Int? = nil) -> Actions {
        var actions = Actions()
        for entry in queue.remove(where: { $0.push.custody == .durable && $0.term != term }) {
            park(entry, &actions)
        }
        return actions
    }

    /// A moment further off than anything waits was named by a clock that has been set back since.
    private func isClaimDue(_ now: UnixTime) -> Bool {
        now >= claimNotBefore || claimNotBefore.since(now) > longestWait
    }

    mutating func refillIfLow(now: UnixTime, _ actions: inout Actions) {
        guard !isClaiming, !keepsNothing, parked > 0, isClaimDue(now), queue.count * 2 <= queue.limit
        else {
            return
        }
        isClaiming = true
        actions.wakesRefill = true
    }

    /// Gives a push back to the store. It counts as parked once the store has said so (`noteParked`).
    mutating func park(_ entry: LaneQueue.Entry, _ actions: inout Actions) {
        if entry.push.custody == .volatile { return shelve(entry, &actions) }
        if entry.isFirst { actions.first.append((entry.push.id, .pending)) }
        let push = entry.push
        let step: Settlement.Step =
            entry.isMoved || entry.unwritten != nil
            ? .retry(notBefore: push.notBefore, attempt: push.attempt, lane: push.lane, parked: true) : .park
        actions.settle.append(Settler.Item(settlement: Settlement(push, step, first: entry.unwritten)))
    }

    /// Back to its place at the front, or to the store when others have filled the room meanwhile.
    mutating func putBack(_ entry: LaneQueue.Entry, _ actions: inout Actions) {
        if keepsNothing && entry.push.custody == .durable || isStopping || queue.count >= queue.limit {
            park(entry, &actions)
        } else {
            queue.putBack(entry)
        }
    }

    private mutating func end(_ entry: LaneQueue.Entry, reason: OutcomeKind, _ actions: inout Actions) {
        actions.custodyEnded += 1
        guard entry.push.custody == .durable else {
            actions.volatileEnded += 1
            return
        }
        if entry.isFirst { actions.first.append((entry.push.id, .known(reason))) }
        let first = entry.isFirst ? reason : entry.unwritten
        actions.settle.append(Settler.Item(settlement: Settlement(entry.push, .settle, first: first)))
    }
}
