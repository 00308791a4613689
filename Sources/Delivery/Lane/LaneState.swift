import PushModel

/// What one lane knows, and all its decisions. A value: events in, actions out.
struct LaneState: Sendable {
    var memory: LaneMemory
    var rows: ParkedRows
    var health: LaneHealth
    var traffic = LaneTraffic()
    var rowsUnderWay = RowsUnderWay()
    /// Pushes that come back to be tried again, once the store has heard of the attempt.
    var returning = 0
    var lateEnds: LateEnds
    /// The lease's term that the queue was filled in.
    private var term = 0
    /// Only volatile pushes are still sent.
    private(set) var isStopping = false
    /// Until when a lane that stops sends that.
    private var drainUntil: ContinuousClock.Instant?
    /// A reload has replaced or removed this lane: its halts are no longer reported.
    private(set) var isReplaced = false
    /// Something has happened since the last tick, which may have to hear of it.
    var hasChanged = true
    /// All durable pushes go back to the store, and none come from it (``Reclaim``).
    private var handsBack: Bool
    private let longestWait: Duration
    private let tickSpan: Duration
    /// A push that is held back for longer is reported as pending.
    private let longHold: Duration
    let witnesses: Int

    /// - Parameter service: what the lane sends to: the longest time for which a push may be put off depends
    ///   on it; a push that is put off for longer was put off by a clock that was since set back.
    /// - Parameter isProven: no registration has to be spared until something is accepted.
    init(
        limits: DeliveryLimits, of service: PushService? = nil, handsBack: Bool = false,
        isProven: Bool = true
    ) {
        self.handsBack = handsBack
        longestWait = max(limits.retryCap(of: service), limits.backoffCap)
        tickSpan = limits.tick
        longHold = limits.backoffBase
        witnesses = limits.breakerWitnesses
        memory = LaneMemory(limits: limits, longestWait: longestWait)
        rows = ParkedRows(limits: limits, longestWait: longestWait)
        health = LaneHealth(limits: limits, isProven: isProven)
        lateEnds = LateEnds(limit: limits.lateEnds)
    }

    // MARK: what others ask

    /// Whether a durable push has left the queue whose settlement the settler has not got yet.
    var isSendingDurable: Bool { traffic.hasDurable }
    /// Counts as many of the returning pushes as there are places for: the others go to the store.
    var inMemory: Int { memory.count + min(returning, memory.free) }
    var parked: Int { rows.count }

    func wouldHold(_ pushClass: PushClass, origin: Digest16, address: () -> Int) -> Bool {
        !isStopping && memory.wouldHold(pushClass, origin: origin, address: address)
    }

    /// How long a push that comes now would wait; `nil` if unknown.
    func expectedWait() -> Duration? {
        guard !health.isHalted, !isStopping else { return nil }
        let ahead = memory.readyCount + rows.count
        if let allowance = health.allowance { return tickSpan * (ahead / allowance) }
        return traffic.wait(behind: ahead, atMost: longestWait)
    }

    /// Whether `next` could return something now.
    func hasWork(now: UnixTime, instant: ContinuousClock.Instant) -> Bool {
        maySend(instant) && memory.hasDue(now)
    }

    /// Whether the next push to leave would be urgent.
    var hasUrgent: Bool { memory.hasUrgent }

    /// Whether a stopping lane has sent its volatile pushes, cannot send them, or must wait no longer.
    func isDrained(_ instant: ContinuousClock.Instant) -> Bool {
        if memory.isEmpty && !traffic.hasVolatile { return true }
        return health.isHalted || drainUntil.map { $0 <= instant } ?? true
    }

    func snapshot(of lane: LaneName, _ figures: [ProviderFigure]) -> LaneSnapshot {
        LaneSnapshot(
            lane: lane, isHalted: health.isHalted, haltedFor: health.haltedFor,
            reason: health.lastFault ?? (health.isUnanswered ? .notReached : nil),
            inMemory: inMemory, parked: rows.count, inFlight: traffic.underWay,
            isUnanswered: health.isUnanswered, figures: figures, heldDestinations: health.heldDestinations,
            waitingAddresses: health.waitingAddresses)
    }

    // MARK: what comes and waits

    /// Takes pushes in. A push without room stays in the store, which already has it.
    mutating func admit(
        _ entries: [LaneQueue.Entry], now: UnixTime, instant: ContinuousClock.Instant
    ) -> Actions {
        var actions = Actions()
        if health.hear(of: entries, at: instant) { actions.breaker = .reopened }
        // In two steps, because in one the whole memory would be copied first.
        let stay = endMoved(endLate(entries, &actions), &actions)
        let entries = memory.stamped(stay)
        guard !keepsNothing else {
            // This lane does not send now or at all; the next one that does finds them in the store.
            for entry in entries { memory.park(entry, &actions) }
            actions.wakesSender = memory.hasShelved
            return actions
        }
        memory.admit(entries, now: now, &actions)
        actions.wakesSender = true
        return actions
    }

    /// The store has recorded an attempt.
    ///
    /// - Parameter isOurs: false: the push has ended, or is another process's.
    mutating func comeBack(
        _ entry: LaneQueue.Entry, isOurs: Bool, now: UnixTime, instant: ContinuousClock.Instant
    ) -> Actions {
        returning -= 1
        return isOurs ? admit([entry], now: now, instant: instant) : Actions()
    }

    /// Looks at both clocks: the wall clock may have been set.
    mutating func heed(_ now: UnixTime, _ instant: ContinuousClock.Instant) { memory.heed(now, instant) }

    /// Pushes that the store holds as parked, due then.
    mutating func noteParked(_ pushClass: PushClass, due: UnixTime) { rows.note(pushClass, due: due) }

    /// A push that the store holds as parked, and that its origin's pace has put off until then.
    mutating func putOff(_ pushClass: PushClass, due: UnixTime) { rows.putOff(pushClass, due: due) }

    /// The store's own count.
    mutating func correct(parked count: Int, hasGained: Bool, notedBefore: Int? = nil) {
        rows.correct(count, hasGained: hasGained, notedBefore: notedBefore)
    }

    /// Pushes that were ever noted as parked.
    var noted: Int { rows.noted }

    /// The claim that was called for; `nil` unless one was.
    mutating func beginClaim(now: UnixTime) -> LaneClaim? { rows.begin(memory.room, now: now) }

    /// A claim was not made, and may be later.
    mutating func abandon(_ claim: LaneClaim) { rows.end(claim) }

    /// - Parameter entries: what the claim has brought that is to be sent.
    mutating func claimed(
        _ claim: LaneClaim, _ entries: [LaneQueue.Entry], now: UnixTime, instant: ContinuousClock.Instant
    ) -> Actions {
        rows.end(claim)
        var actions = admit(entries, now: claim.begun, instant: instant)
        // Pushes that became due while the store was asked need not wait for the next tick.
        askStore(now: now, &actions)
        return actions
    }

    /// Pushes that wait for their next attempt, and not for the service, are tried now.
    mutating func hurry(now: UnixTime) -> Actions {
        memory.wake(now: now + longestWait)
        rows.hurry()
        var actions = Actions()
        askStore(now: now, &actions)
        actions.wakesSender = true
        return actions
    }

    // MARK: what leaves

    /// The lane begins in that term of the lease.
    ///
    /// - Parameter isProven: its service has accepted something under the same configuration.
    mutating func begin(term: Int, isProven: Bool) {
        self.term = term
        if isProven { health.prove() }
    }

    /// The next push to send, if the lane may send. Pushes whose custody has ended are settled on the way.
    ///
    /// - Parameters:
    ///   - term: of the lease. `nil`: it has run out, and durable pushes go back to the store; the others may
    ///     leave.
    ///   - isRevoked: it has ended with its registration on its way here.
    mutating func next(
        at moment: LaneMoment, term: Int?, isRevoked: (PushID) -> Bool, _ actions: inout Actions
    ) -> LaneQueue.Entry? {
        memory.believe(moment.clock)
        guard let term else {
            var given = memory.giveBack()
            given.ranOut = given.settle.count
            actions.join(given)
            return take(at: moment, isLeased: false, isRevoked, &actions)
        }
        if self.term != term {
            // The lease ran out and was renewed since: the pushes here may have been given to another
            // process.
            self.term = term
            actions.join(memory.giveBack(keeping: term))
        }
        return take(at: moment, isLeased: true, isRevoked, &actions)
    }

    /// The same as an event of its own.
    mutating func next(
        at moment: LaneMoment, term: Int?
    ) -> (entry: LaneQueue.Entry?, actions: Actions) {
        var actions = Actions()
        let entry = next(at: moment, term: term, isRevoked: { _ in false }, &actions)
        return (entry, actions)
    }

    /// - Parameter isLeased: false asks the store for nothing more.
    private mutating func take(
        at moment: LaneMoment, isLeased: Bool, _ isRevoked: (PushID) -> Bool, _ actions: inout Actions
    ) -> LaneQueue.Entry? {
        let (now, instant) = (moment.now, moment.instant)
        memory.heed(now, instant)
        guard maySend(instant) else { return nil }
        memory.wake(now: now)
        let (isHalted, isTurn) = (health.isHalted, health.goesOneByOne)
        while var entry = isHalted ? memory.takeProbe(health.lately(instant)) : memory.take(isTurn: isTurn) {
            if isRevoked(entry.push.id) { continue }
            guard entry.term == term || entry.push.isVolatile else {
                // Asked for, or sent, in an earlier term, and arrived only now.
                memory.park(entry, &actions)
                continue
            }
            guard entry.push.custodyEnds > memory.custodyTime(of: entry.push, now) else {
                actions.end(entry)
                continue
            }
            if let wait = health.wait(of: entry, at: instant) {
                // No reply waits for a push that will not leave before the reply's deadline.
                if entry.isFirst, wait > longHold { actions.first.append((entry.push.id, .pending)) }
                memory.holdBack(entry, for: wait, now: now, &actions)
                continue
            }
            countOut(&entry)
            lateEnds.sent(entry.push)
            health.sent(entry, at: instant)
            entry.isProbe = isHalted
            if isLeased { askStore(now: now, &actions) }
            // An entry is large.
            return consume entry
        }
        if isLeased { askStore(now: now, &actions) }
        return nil
    }

    /// A push is under way from now on, until ``countIn(_:)``.
    mutating func countOut(_ entry: inout LaneQueue.Entry) {
        traffic.sent(entry.push.custody)
        entry.place = rowsUnderWay.sent(entry.push)
    }

    /// - Returns: the name that its row has been given meanwhile.
    mutating func countIn(_ entry: LaneQueue.Entry) -> RowsUnderWay.Name? {
        traffic.answered(entry.push.custody)
        return rowsUnderWay.ended(entry)
    }

    /// A stopping lane sends only volatile pushes: all others have left its queue.
    private func maySend(_ instant: ContinuousClock.Instant) -> Bool {
        health.maySend(instant) && (!isStopping || drainUntil.map { instant < $0 } ?? false)
    }

    private mutating func askStore(now: UnixTime, _ actions: inout Actions) {
        guard rows.mayAsk, !keepsNothing else { return }
        if rows.ask(for: memory.room, isHalted: health.isHalted, now: now) { actions.wakesRefill = true }
    }

    // MARK: the tick

    /// Whether the next tick could find something to do: a change that it has not seen, or something that is
    /// owed here and may become due, expire or be claimed.
    var needsTick: Bool {
        hasChanged || isStopping || !memory.isEmpty || !rows.isEmpty || traffic.underWay + returning > 0
    }

    /// The tick: retries that are due, custody that has ended, the store's parked pushes.
    ///
    /// - Parameters:
    ///   - isLeased: false gives all durable pushes back, because another process may own their rows by now.
    ///   - isCongested: by our own store.
    mutating func tick(
        at moment: LaneMoment, seconds: Double, isLeased: Bool, isCongested: Bool = false
    ) -> Actions {
        let (now, instant) = (moment.now, moment.instant)
        memory.believe(moment.clock)
        traffic.tick(seconds: seconds, isBehind: memory.readyCount + rows.count > 0)
        rows.wake(now: now)
        let pace = health.tick(at: instant) ? PaceChange.atFullSpeed : .none
        var actions = isLeased ? Actions() : memory.giveBack()
        actions.pace = pace
        memory.heed(now, instant)
        memory.endCustody(now: now, &actions)
        memory.wake(now: now)
        if health.endsTurns(instant) { memory.endTurns() }
        rows.tick()
        if isLeased { askStore(now: now, &actions) }
        actions.wakesSender = hasWork(now: now, instant: instant)
        actions.reach = health.tick(work(isHeldUp: !isLeased || isCongested), at: instant)
        actions.reason = health.lastFault ?? .notReached
        return actions
    }

    /// What the tick tells about the lane's work.
    private func work(isHeldUp: Bool) -> Reach.Work {
        if memory.isEmpty && rows.count == 0 && traffic.underWay + returning == 0 { return .none }
        if isHeldUp || health.isHalted || isStopping || handsBack { return .heldUp }
        return memory.readyCount > 0 || traffic.underWay > 0 ? .present : .waits
    }
}

// MARK: - Halts and ends

extension LaneState {
    /// Nothing durable stays in memory.
    var keepsNothing: Bool { isStopping || handsBack }

    /// All durable pushes go back to the store until told otherwise.
    mutating func handBack(_ handsBack: Bool) -> Actions {
        self.handsBack = handsBack
        return handsBack ? memory.giveBack() : Actions()
    }

    /// A reload replaces or removes this lane.
    ///
    /// - Returns: whether it was halted, which is no longer reported.
    mutating func giveWay() -> Bool {
        isReplaced = true
        return health.isHalted
    }

    /// Nothing more is taken from the store, and durable pushes go back to it. Volatile pushes are tried once
    /// more at once.
    mutating func stop(drainUntil: ContinuousClock.Instant, now: UnixTime) -> Actions {
        guard !isStopping else { return memory.giveBack() }
        isStopping = true
        self.drainUntil = drainUntil
        let actions = memory.giveBack()
        memory.hurry(now: now)
        return actions
    }

    /// The end: nothing more is sent.
    mutating func finish() -> Actions {
        var actions = memory.giveBack()
        if health.end() { actions.reach = .left }
        memory.finish(&actions)
        return actions
    }
}
