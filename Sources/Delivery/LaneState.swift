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
        var reason = Reason.ok
    }

    var queue: LaneQueue
    var breaker: Breaker
    /// Parked rows in the store, as far as this process knows.
    var parked = 0
    /// Not before then is the store asked again for parked pushes.
    var claimNotBefore: UnixTime = .distantPast
    var isClaiming = false
    var nextProbe: ContinuousClock.Instant?
    var inFlight = 0
    var isStopping = false
    var lastFault: Reason?
    /// Answers per second, smoothed, for the estimate of a wait.
    var rate = 0.0
    var answersInTick = 0

    init(limits: DeliveryLimits) {
        queue = LaneQueue(limit: limits.lanePushes)
        breaker = Breaker(answers: limits.breakerAnswers, addresses: limits.breakerAddresses)
    }

    var isHalted: Bool { breaker.state != .open }
    var backlog: Int { queue.count + parked }

    /// How long a push that comes now would wait; `nil` when nobody can say.
    func expectedWait() -> Duration? {
        guard !isHalted else { return nil }
        let ahead = queue.readyCount + parked
        if ahead <= 1_000 { return .zero }
        guard rate > 0 else { return nil }
        return .milliseconds(Int64(Double(ahead) / rate * 1_000))
    }

    /// Takes pushes in. What finds no room goes back to the store, which has it already.
    mutating func admit(_ entries: [LaneQueue.Entry], now: UnixTime) -> Actions {
        var actions = Actions()
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

    /// Pushes that the store wrote as parked.
    mutating func noteParked(_ count: Int) { parked += count }

    /// The next push to send, if the lane may send; custody that has ended is settled on the way.
    mutating func take(now: UnixTime, instant: ContinuousClock.Instant, probeEvery: Duration)
        -> (entry: LaneQueue.Entry?, actions: Actions)
    {
        var actions = Actions()
        guard !isStopping else { return (nil, actions) }
        if isHalted {
            guard let probe = nextProbe, probe <= instant else { return (nil, actions) }
            nextProbe = instant + probeEvery
        }
        queue.wake(now: now)
        while let entry = queue.take() {
            guard entry.push.custodyEnds > now else {
                end(entry, reason: .rejected, &actions)
                continue
            }
            inFlight += 1
            refillIfLow(now: now, &actions)
            return (entry, actions)
        }
        refillIfLow(now: now, &actions)
        return (nil, actions)
    }

    /// Whether `take` could give something now.
    func hasWork(now: UnixTime, instant: ContinuousClock.Instant) -> Bool {
        guard !isStopping else { return false }
        if isHalted { guard let probe = nextProbe, probe <= instant else { return false } }
        return queue.readyCount > 0 || queue.nextDue.map { $0 <= now } ?? false
    }

    /// The tick: retries that are due, custody that has ended, the store's parked pushes.
    mutating func tick(now: UnixTime, instant: ContinuousClock.Instant, seconds: Double) -> Actions {
        var actions = Actions()
        rate = rate * 0.8 + Double(answersInTick) / seconds * 0.2
        answersInTick = 0
        queue.wake(now: now)
        for entry in queue.remove(where: { $0.push.custodyEnds <= now }) {
            end(entry, reason: .rejected, &actions)
        }
        refillIfLow(now: now, &actions)
        actions.wakesSender = hasWork(now: now, instant: instant)
        return actions
    }

    /// The lease has run out: another process may own these rows by now. They go back to the store, which
    /// changes nothing where they are no longer ours.
    mutating func dropMemory() -> Actions {
        var actions = Actions()
        for entry in queue.remove(where: { _ in true }) { park(entry, &actions) }
        return actions
    }

    private mutating func refillIfLow(now: UnixTime, _ actions: inout Actions) {
        guard !isClaiming, !isStopping, parked > 0, now >= claimNotBefore, queue.count * 2 <= queue.limit
        else {
            return
        }
        isClaiming = true
        actions.wakesRefill = true
    }

    mutating func park(_ entry: LaneQueue.Entry, _ actions: inout Actions) {
        parked += 1
        claimNotBefore = min(claimNotBefore, entry.push.notBefore)
        if entry.isFirst { actions.first.append((entry.push.id, .pending)) }
        actions.settle.append(Settler.Item(settlement: Settlement(entry.push, .park, first: nil)))
    }

    private mutating func end(_ entry: LaneQueue.Entry, reason: OutcomeKind, _ actions: inout Actions) {
        if entry.isFirst { actions.first.append((entry.push.id, .known(reason))) }
        actions.settle.append(
            Settler.Item(settlement: Settlement(entry.push, .settle, first: entry.isFirst ? reason : nil)))
    }
}
