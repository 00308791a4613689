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
        var reach = Reach.News.none
        var reason = Reason.ok
        /// Pushes whose custody ended unsent.
        var custodyEnded = 0
        /// Calls that may have rung, and are not sent again.
        var spentCalls = 0
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
    var reach: Reach
    /// The authorities that pushes name, where they do.
    var destinations: Destinations
    /// Parked rows in the store, as far as this process knows.
    var parked = 0
    /// Parked rows beside them that the pace has put off.
    var putOff = PutOff()
    /// Not before then is the store asked again for parked pushes of each class.
    var claimNotBefore: [UnixTime] = [.distantPast, .distantPast, .distantPast]
    var isClaiming = false
    /// What the claim asks for that is called for, or under way.
    private var claimClasses = PushClass.urgent ... .background
    /// The class at which the next claim of a halted lane begins.
    private var claimTurn = 0
    /// Once a tick the store may be asked although memory is more than half full.
    private var mayClaimAhead = false
    /// Rows that were parked since the claim under way began.
    private var parkedSinceClaim = 0
    /// The lease's term that the queue was filled in.
    var term = 0
    var nextProbe: ContinuousClock.Instant?
    /// When the probes that came back stand in their places again.
    private var turnsEnd: ContinuousClock.Instant?
    var inFlight = 0
    var isStopping = false
    /// Another lane of its name has come, or none: nobody hears of this one's halts.
    var isReplaced = false
    /// All that is durable goes back to the store, and none comes from it (``Reclaim``).
    var handsBack: Bool
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
    /// Between questions to the store that may have been too early.
    let retryClaim: Duration
    /// How long probes that came back wait for others when the lane goes on.
    private let probesWait: Duration
    /// A halted lane sends that often anyhow.
    private let mostRest: Duration
    let keepRetryWithin: Duration
    private let witnesses: Int

    init(limits: DeliveryLimits, handsBack: Bool = false) {
        self.handsBack = handsBack
        claimRows = limits.claimRows
        longestWait = max(limits.retryAfterCap, limits.backoffCap)
        tickSpan = limits.tick
        retryClaim = limits.backoffBase
        probesWait = limits.backoffBase
        mostRest = limits.probeEvery
        keepRetryWithin = limits.keepRetryWithin
        witnesses = limits.breakerWitnesses
        reach = Reach(limits: limits)
        destinations = Destinations(limits: limits)
        throttle = Throttle(refusals: limits.throttleRefusals, open: limits.lanePushes)
        queue = LaneQueue(limit: limits.lanePushes)
        shelf = LaneQueue(limit: limits.volatilePushes)
        breaker = Breaker(
            answers: limits.breakerAnswers, addresses: limits.breakerAddresses,
            witnesses: limits.breakerWitnesses, memory: limits.originsRemembered)
    }

    /// Whether a durable push has left the queue whose settlement the settler has not got yet.
    var isSendingDurable: Bool { inFlight > volatileInFlight }
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
    mutating func admit(
        _ entries: [LaneQueue.Entry], now: UnixTime, instant: ContinuousClock.Instant
    ) -> Actions {
        var actions = Actions()
        if breaker.state == .halted(.targets) { hear(of: entries, at: instant, &actions) }
        // Hardly ever: most machines' clocks are never set.
        let entries = wallClock.shift == .zero ? entries : entries.map(wallClock.stamped)
        guard !keepsNothing else {
            // Nobody sends here any more, or not now; the next one that does finds them in the store.
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

    /// Pushes that the store holds as parked, due then.
    mutating func noteParked(_ pushClass: PushClass, due: UnixTime, count: Int = 1) {
        guard count > 0 else { return }
        parked += count
        parkedSinceClaim += count
        let level = Int(pushClass.rawValue)
        claimNotBefore[level] = min(claimNotBefore[level], due)
    }

    /// The store's own count.
    mutating func correct(parked count: Int) {
        let count = max(0, count - putOff.total)
        // More than we know of came by another way: from a dead process, or from a lane before this one.
        if count > parked { for level in claimNotBefore.indices { claimNotBefore[level] = .distantPast } }
        parked = count
    }

    /// How many pushes a claim may bring now, and of which classes; `nil` unless one was called for.
    mutating func beginClaim() -> (room: Int, classes: ClosedRange<PushClass>)? {
        guard isClaiming else { return nil }
        parkedSinceClaim = 0
        for level in claimClasses.levels { claimNotBefore[level] = .distantFuture }
        let room = queue.limit - queue.durableCount(upTo: claimClasses.upperBound)
        return (min(max(room, 1), claimRows), claimClasses)
    }

    /// - Parameter next: when the store may be asked again for the classes that were asked for.
    /// - Parameter seen: of this class and the more urgent ones all that was due has been brought.
    /// - Parameter isLast: nothing is parked beside what was claimed and what came meanwhile. What we do not
    ///   know to be gone is asked for once more.
    mutating func endClaim(
        of count: Int, next: UnixTime, allSeen seen: PushClass? = nil, now: UnixTime, isLast: Bool
    ) {
        isClaiming = false
        parked = isLast ? parkedSinceClaim : max(parked - count, 1)
        // When the next of a class is due the store does not say; where it may be any moment it is asked
        // again soon.
        for level in claimClasses.levels {
            let isSeen = seen.map { level <= Int($0.rawValue) } ?? false
            let due = isSeen && next <= now ? now + retryClaim : next
            claimNotBefore[level] = min(claimNotBefore[level], due)
        }
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
        let goesOneByOne = isHalted || reach.isSilent
        while var entry = isHalted ? takeProbe(instant) : goesOneByOne ? queue.takeTurn() : queue.take() {
            guard entry.term == term || entry.push.custody == .volatile else {
                // Asked for, or sent, in an earlier term, and here only now.
                park(entry, &actions)
                continue
            }
            guard entry.push.custodyEnds > custodyTime(of: entry.push, now) else {
                end(entry, reason: .rejected, &actions)
                continue
            }
            if let wait = wait(of: entry, at: instant) {
                holdBack(entry, for: wait, now: now, &actions)
                continue
            }
            inFlight += 1
            if entry.push.custody == .volatile { volatileInFlight += 1 }
            noteSent(entry, at: instant)
            entry.isProbe = isHalted
            if isLeased { refillIfLow(now: now, &actions) }
            return (entry, actions)
        }
        if isLeased { refillIfLow(now: now, &actions) }
        return (nil, actions)
    }

    /// The next probe: to somebody who was lately reached, if anything of theirs waits, else in turn.
    ///
    /// An origin whose probe was not accepted is asked no more before it is accepted again (`judge`), so as
    /// many probes as there are such origins go before the first turn of the others.
    private mutating func takeProbe(_ instant: ContinuousClock.Instant) -> LaneQueue.Entry? {
        let known = breaker.accepted.lately(instant)
        guard var entry = queue.takeKnown(known, address: { $0.push.message.addressNumber }) else {
            return queue.takeTurn()
        }
        entry.isKnown = true
        return entry
    }

    /// Whether `take` could give something now.
    func hasWork(now: UnixTime, instant: ContinuousClock.Instant) -> Bool {
        guard mayTake(instant) else { return false }
        if isHalted { guard let probe = nextProbe, probe <= instant else { return false } }
        return queue.hasDue(now) || (canUnshelve && shelf.hasDue(now))
    }

    /// A lane that stops sends no more than what is volatile: all else has left its queue.
    private func mayTake(_ instant: ContinuousClock.Instant) -> Bool {
        guard throttle.maySend, isHalted || reach.mayTry(instant) else { return false }
        return !isStopping || drainUntil.map { instant < $0 } ?? false
    }

    /// The tick: retries that are due, custody that has ended, the store's parked pushes.
    ///
    /// - Parameter isLeased: false gives all memory back, for by now the rows may be another's.
    mutating func tick(
        now: UnixTime, instant: ContinuousClock.Instant, seconds: Double, isLeased: Bool,
        isCongested: Bool = false
    ) -> Actions {
        // Only while something waits does the lane show how fast it is; else the rate is that of what came.
        let present = Double(answersInTick) / seconds
        rate = queue.readyCount + parked > 0 ? rate * 0.8 + present * 0.2 : max(rate, present)
        answersInTick = 0
        for (pushClass, count) in putOff.take(upTo: now, within: longestWait) {
            noteParked(pushClass, due: now, count: count)
        }
        destinations.tick()
        let pace = throttle.tick() ? PaceChange.atFullSpeed : .none
        var actions = isLeased ? Actions() : dropMemory()
        actions.pace = pace
        heed(now, instant)
        queue.wake(now: now, within: longestWait)
        for entry in removeEnded(now) { end(entry, reason: .rejected, &actions) }
        for entry in shelf.removeEnded(now: now) { end(entry, reason: .rejected, &actions) }
        unshelve(now: now)
        if let end = turnsEnd, end <= instant, !isHalted {
            queue.endTurns()
            turnsEnd = nil
        }
        mayClaimAhead = true
        if isLeased { refillIfLow(now: now, &actions) }
        actions.wakesSender = hasWork(now: now, instant: instant)
        actions.reach = reach.tick(work(isHeldUp: !isLeased || isCongested), at: instant)
        actions.reason = lastFault ?? .notReached
        return actions
    }

    /// The time that says whether custody of a push has ended. Volatile pushes move with the clock
    /// (``WallClock``), for none is older than this process.
    func custodyTime(of push: OwedPush, _ now: UnixTime) -> UnixTime {
        Self.custodyTime(of: push, now, doubted)
    }

    private static func custodyTime(
        of push: OwedPush, _ now: UnixTime, _ doubted: DoubtedClock.Reading?
    ) -> UnixTime {
        guard let doubted, push.custody == .durable else { return now }
        return min(now, doubted.end(of: push.id.acceptedAt, lasting: push.custodyEnds))
    }

    private mutating func removeEnded(_ now: UnixTime) -> [LaneQueue.Entry] {
        guard let doubted else { return queue.removeEnded(now: now) }
        let ended = queue.remove { $0.push.custodyEnds <= Self.custodyTime(of: $0.push, now, doubted) }
        queue.forgetCustody()
        return ended
    }

    /// The lease has run out: another process may own these rows by now. They go back to the store, which
    /// changes nothing where they are no longer ours. Volatile pushes have no row and stay.
    ///
    /// - Parameter term: what came in this one stays too, because it is ours.
    mutating func dropMemory(keeping term: Int? = nil) -> Actions {
        var actions = Actions()
        for entry in queue.remove(where: { $0.push.custody == .durable && $0.term != term }) {
            park(entry, &actions)
        }
        return actions
    }

    /// A moment further off than anything waits was named by a clock that has been set back since.
    private func isClaimDue(_ level: Int, _ now: UnixTime) -> Bool {
        now >= claimNotBefore[level] || claimNotBefore[level].since(now) > longestWait
    }

    /// Asks the store when memory is half empty: of everything or, as far as it is full of what is less
    /// urgent, of what goes before that.
    mutating func refillIfLow(now: UnixTime, _ actions: inout Actions) {
        guard !isClaiming, !keepsNothing, parked > 0, let classes = classesToClaim(now) else { return }
        isClaiming = true
        claimClasses = classes
        actions.wakesRefill = true
    }

    private mutating func classesToClaim(_ now: UnixTime) -> ClosedRange<PushClass>? {
        if queue.durableCount(upTo: .background) * 2 <= queue.limit {
            return claimNotBefore.indices.contains { isClaimDue($0, now) } ? .urgent ... .background : nil
        }
        guard mayClaimAhead else { return nil }
        // A halted lane's turns come to all that is parked, one by one and of each class.
        if isHalted, queue.count < queue.limit {
            for step in PushClass.allCases.indices {
                let first = PushClass.allCases[(claimTurn + step) % PushClass.allCases.count]
                let classes = first ... .background
                guard classes.levels.contains(where: { isClaimDue($0, now) }) else { continue }
                (mayClaimAhead, claimTurn) = (false, Int(first.rawValue) + 1)
                return classes
            }
            return nil
        }
        return claimAhead(downTo: .normal, now) ?? claimAhead(downTo: .urgent, now)
    }

    private mutating func claimAhead(downTo lowest: PushClass, _ now: UnixTime) -> ClosedRange<PushClass>? {
        let classes = PushClass.urgent...lowest
        guard queue.durableCount(upTo: lowest) * 2 <= queue.limit,
            classes.levels.contains(where: { isClaimDue($0, now) })
        else { return nil }
        mayClaimAhead = false
        return classes
    }

    /// What the tick can tell of the lane's work.
    ///
    /// - Parameter isHeldUp: by our own store.
    private func work(isHeldUp: Bool) -> Reach.Work {
        if queue.isEmpty && shelf.isEmpty && parked == 0 && inFlight == 0 { return .none }
        if isHeldUp || isHalted || isStopping || handsBack { return .heldUp }
        return queue.readyCount > 0 || inFlight > 0 ? .present : .waits
    }

    /// The lane may send everything again. Probes that came back go last, or after a while: if one of them
    /// was what halted the lane, the others have gone until it does so again.
    mutating func goOn(_ instant: ContinuousClock.Instant) {
        nextProbe = nil
        turnsEnd = instant + probesWait
    }

    /// A halt for which one or two origins spoke does not outlast the coming of another.
    private mutating func hear(
        of entries: [LaneQueue.Entry], at instant: ContinuousClock.Instant, _ actions: inout Actions
    ) {
        for entry in entries where entry.push.custody == .durable && breaker.state == .halted(.targets) {
            guard breaker.heard(of: entry.push.origin, at: instant) == .reopened else { continue }
            actions.breaker = .reopened
            goOn(instant)
        }
    }

    /// Tells the breaker whose pushes wait here, before it judges by those that were answered.
    mutating func nameWaitingOrigins(_ instant: ContinuousClock.Instant) {
        // Open, it changes nothing by that.
        for origin in waitingOrigins { _ = breaker.heard(of: origin, at: instant) }
    }

    var waitingOrigins: [Digest16] { queue.origins(atMost: witnesses) }

    /// Gives a push back to the store. It counts as parked once the store has said so (`noteParked`).
    mutating func park(_ entry: LaneQueue.Entry, _ actions: inout Actions) {
        if entry.push.custody == .volatile { return shelve(entry, &actions) }
        if entry.isFirst { actions.first.append((entry.push.id, .pending)) }
        let push = entry.push
        // Its rest goes on in the store, where nobody knows how often it was blamed.
        let rests = rest(of: entry) > .zero
        let attempt = rests ? push.attempt + 1 : push.attempt
        let step: Settlement.Step =
            entry.isMoved || entry.unwritten != nil || rests
            ? .retry(notBefore: push.notBefore, attempt: attempt, lane: push.lane, parked: true) : .park
        actions.settle.append(Settler.Item(settlement: Settlement(push, step, first: entry.unwritten)))
    }

    /// Back to its place at the front, or to the store when others have filled the room meanwhile. A probe
    /// goes behind all that wait, here and in the store: the next one is another's turn.
    mutating func putBack(_ entry: LaneQueue.Entry, now: UnixTime, _ actions: inout Actions) {
        let rest = rest(of: entry)
        let goesLast = isHalted && (entry.isProbe || rest > .zero)
        let isFull = queue.count >= queue.limit
        var last = entry
        last.push.notBefore = now + rest
        if keepsNothing && entry.push.custody == .durable || isStopping || isFull && !goesLast {
            park(entry, &actions)
        } else if !goesLast {
            queue.putBack(entry)
        } else if entry.push.custody == .durable && (isFull || parked > 0) {
            let push = last.push
            // Counted, because it will not be known in memory how often it met the fault.
            let step = Settlement.Step.retry(
                notBefore: push.notBefore, attempt: push.attempt + 1, lane: push.lane, parked: true)
            actions.settle.append(
                Settler.Item(settlement: Settlement(push, step, first: last.unwritten)))
        } else if isFull {
            park(entry, &actions)
        } else if rest > .zero {
            queue.putToSleep(last)
        } else {
            queue.setAside(entry)
        }
    }

    /// How long a push waits that has met the credential's fault again and again. Where others are accepted
    /// meanwhile the fault is with this push alone, and each of their answers would send it once more.
    private func rest(of entry: LaneQueue.Entry) -> Duration {
        let times = entry.blamed + (entry.blamed > 0 ? entry.push.attempt : 0)
        guard times > 2 else { return .zero }
        return min(probesWait * (1 << min(times - 3, 16)), mostRest)
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

extension ClosedRange<PushClass> {
    /// As indices of what is kept for each class.
    fileprivate var levels: ClosedRange<Int> { Int(lowerBound.rawValue)...Int(upperBound.rawValue) }
}
