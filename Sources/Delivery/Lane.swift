import PushModel
import Synchronization

/// One way out: queue, breaker, sender and refill loops over one provider.
///
/// All decisions are made in ``LaneState`` under a lock that is held for no wait; the loops carry them out.
final class Lane<P: Provider>: LaneHandle {
    let name: LaneName
    let provider: P
    let core: DeliveryCore
    private let credential: Credential
    private let state: Mutex<LaneState>
    private let sender = Bell()
    private let refill = Bell()
    private let stopped = Bell()
    private let drained = Bell()
    private let meter: LaneMeter
    /// Leave to lease volatile pushes; `nil` for a provider that is not direct.
    private let leave: DirectLeave?

    /// - Parameter handsBack: it is made while ``Reclaim`` is under way.
    convenience init(provider: P, credential: Credential, core: DeliveryCore, handsBack: Bool) {
        self.init(provider, nil, credential, core, handsBack)
    }

    convenience init(
        direct provider: P, credential: Credential, core: DeliveryCore, handsBack: Bool
    ) where P: DirectProvider {
        self.init(provider, DirectLeave(of: provider), credential, core, handsBack)
    }

    private init(
        _ provider: P, _ leave: DirectLeave?, _ credential: Credential, _ core: DeliveryCore,
        _ handsBack: Bool
    ) {
        name = provider.lane
        self.provider = provider
        self.leave = leave
        self.core = core
        self.credential = credential
        meter = LaneMeter(provider.lane)
        state = Mutex(LaneState(limits: core.limits, handsBack: handsBack))
    }

    func wouldHold(_ pushClass: PushClass, origin: Digest16) -> Bool {
        state.withLock { !$0.isStopping && $0.queue.wouldHold(pushClass, origin: origin) }
    }

    func expectedWait() -> Duration? { state.withLock { $0.expectedWait() } }

    func admit(_ entries: [LaneQueue.Entry], parked: [PushClass]) {
        let (now, instant) = (core.world.now(), core.world.instant())
        change { state in
            for pushClass in parked { state.noteParked(pushClass, due: now) }
            state.heed(now, instant)
            return state.admit(entries, now: now, instant: instant)
        }
    }

    func tick(seconds: Double) {
        let (now, instant) = (core.world.now(), core.world.instant())
        let isLeased = core.lease.grant() != nil
        let isCongested = core.settler.isCongested
        let time = core.clock.reading(now, instant)
        let snapshot = change { state in
            state.doubted = time.isDoubted ? time : nil
            let actions = state.tick(
                now: now, instant: instant, seconds: seconds, isLeased: isLeased, isCongested: isCongested)
            return ((state.queue.count + state.shelf.count, state.parked, state.isStopping), actions)
        }
        meter.backlog(inMemory: snapshot.0, parked: snapshot.1)
        if snapshot.2 { drained.ring() }
    }

    func correct(parked: Int) { state.withLock { $0.correct(parked: parked) } }

    func landed(_ pushClass: PushClass, due: UnixTime) {
        state.withLock { $0.noteParked(pushClass, due: due) }
    }

    func putOff(_ pushes: [(pushClass: PushClass, due: UnixTime)]) {
        state.withLock { state in for (pushClass, due) in pushes { state.putOff.add(pushClass, due: due) } }
    }

    func setCredential(fault: Reason?) {
        let instant = core.world.instant()
        let probe = instant + core.limits.probeEvery
        let isReported = state.withLock { state in
            let before = state.breaker.state
            if fault != nil {
                state.breaker.haltForCredential()
                state.nextProbe = state.nextProbe ?? probe
            } else {
                state.breaker.resumeFromCredential()
                // A lane that its own target faults halted goes on probing.
                if !state.isHalted { state.goOn(instant) }
            }
            return state.breaker.state != before && !state.isReplaced
        }
        if isReported {
            meter.halted(fault != nil)
            if let fault { core.laneHalted(name, .credential, fault) } else { core.laneResumed(name) }
        }
        sender.ring()
        drained.ring()
    }

    func snapshot() -> LaneSnapshot {
        let figures = provider.figures()
        return state.withLock { state in
            var cause: Breaker.Cause?
            if case .halted(let why) = state.breaker.state { cause = why }
            return LaneSnapshot(
                lane: name, isHalted: cause != nil, haltedFor: cause, reason: state.lastFault,
                inMemory: state.queue.count + state.shelf.count, parked: state.parked,
                inFlight: state.inFlight, isUnanswered: state.reach.isUnanswered, figures: figures,
                heldDestinations: state.destinations.held)
        }
    }

    func stop() {
        // At once, so that a lane that takes this one's place need not wait for our last answers.
        let until = core.world.instant() + core.limits.volatileDrain
        let now = core.world.now()
        change { $0.stop(drainUntil: until, now: now) }
        sender.ring()
        refill.ring()
        stopped.ring()
    }

    /// Stops as a lane that another one replaces, or none: whether it is halted is nobody's concern any more.
    func giveWay() {
        let wasHalted = state.withLock { state in
            state.isReplaced = true
            return state.isHalted
        }
        stop()
        guard wasHalted else { return }
        meter.halted(false)
        core.haltedLaneLeft(name)
    }

    func handBack(_ handsBack: Bool) {
        change { state in
            state.handsBack = handsBack
            return handsBack ? state.dropMemory() : LaneState.Actions()
        }
    }

    var isSending: Bool { state.withLock(\.isSendingDurable) }

    /// Sends until stopped; then what is volatile, for a bounded while; then waits for what is under way
    /// (each request has its own deadline), and leaves the rest to the store.
    func run() async {
        await withTaskExecutorPreference(provider.executor) { await runHere() }
    }

    private func runHere() async {
        state.withLock { $0.term = core.lease.term }
        await withTaskGroup(of: Void.self) { support in
            support.addTask { await self.runProvider() }
            support.addTask { await self.refillLoop() }
            await withTaskGroup(of: Void.self) { sending in
                sending.addTask { await withDiscardingTaskGroup { sends in await self.sendLoop(&sends) } }
                await self.stopped.wait()
                while !Task.isCancelled, !self.isDrained { await self.drained.wait() }
                // Ends a wait for a stream; requests under way do not end by cancellation (see `Provider`).
                sending.cancelAll()
            }
            support.cancelAll()
        }
        change { $0.finish() }
    }

    private var isDrained: Bool {
        let instant = core.world.instant()
        return state.withLock { $0.isDrained(instant) }
    }

    private func runProvider() async {
        do { try await provider.run() } catch is CancellationError {
            return
        } catch {
            // A provider ends only when cancelled; anything else is said and leaves the lane to its probes.
            core.journal.note("provider ended", [.lane: name], level: .error)
        }
    }

    private var isStopping: Bool { state.withLock(\.isStopping) }

    private func sendLoop(_ sends: inout DiscardingTaskGroup) async {
        // A stop ends it by cancelling, once the volatile pushes are gone.
        while !Task.isCancelled {
            let (now, instant) = (core.world.now(), core.world.instant())
            let maySend =
                !core.settler.isCongested && state.withLock { $0.hasWork(now: now, instant: instant) }
            guard maySend else {
                await sender.wait()
                continue
            }
            // The slot first, the push after: a call that comes while we wait for a stream still goes first.
            guard let slot = try? await provider.reserve() else { return }  // Thrown only by cancellation.
            guard let leased = next() else {
                slot.release()
                continue
            }
            sends.addTask { await self.send(leased.entry, leased.lease, on: slot) }
        }
    }

    /// The most urgent push, with the lease checked at this moment.
    private func next() -> (entry: LaneQueue.Entry, lease: LeasedPush)? {
        let grant = core.lease.grant()
        if grant == nil {
            let count = change { state in
                let actions = state.dropMemory()
                return (actions.settle.count, actions)
            }
            if count > 0 { core.journal.note("lease ran out", [.lane: name, .count: count], level: .warning) }
        }
        let (now, instant) = (core.world.now(), core.world.instant())
        let time = core.clock.reading(now, instant)
        let entry = change { state -> (LaneQueue.Entry?, LaneState.Actions) in
            state.doubted = time.isDoubted ? time : nil
            guard let grant else { return state.takeVolatile(now: now, instant: instant, core.limits) }
            // The lease ran out and was renewed since: what stands here may have been given to another.
            guard state.term == grant.term else {
                state.term = grant.term
                return (nil, state.dropMemory(keeping: grant.term))
            }
            return state.take(now: now, instant: instant, probeEvery: core.limits.probeEvery)
        }
        guard let entry else { return nil }
        if entry.push.custody == .durable {
            return grant.map { (entry, LeasedPush(granting: entry.push, sendBefore: $0.sendBefore)) }
        }
        // Nobody else can own a push that stands in our memory only.
        let latest = instant + core.limits.requestDeadline
        return leave.map { (entry, LeasedPush(granting: entry.push, to: $0, sendBefore: latest)) }
    }

    private func send(_ entry: LaneQueue.Entry, _ lease: LeasedPush, on slot: P.Slot) async {
        let answer = await provider.send(lease, on: slot)
        meter.answered(answer)
        switch await core.learned(from: answer, for: entry) {
        case .nothing: finish(entry, answer, learned: [])
        case .change(let learned): finish(entry, answer, learned: [learned])
        case .goesOnInMemory(let other):
            core.observer.attempted?(
                Attempt(entry.push, answer, answer.outcome, .elsewhere, at: core.world.now()))
            let (now, instant) = (core.world.now(), core.world.instant())
            let moved = state.withLock { state in
                state.noteAnswer(of: entry)
                state.heed(now, instant)
                return state.wallClock.moved(entry)
            }
            other.take(over: moved)
            drained.ring()
        case .goesOn(let other):
            core.observer.attempted?(
                Attempt(entry.push, answer, answer.outcome, .elsewhere, at: core.world.now()))
            var moved = entry
            moved.push.lane = other.name
            moved.isMoved = true
            // There before it is gone here: at every moment one of both lanes counts it (``Reclaim``).
            other.admit([moved], parked: [])
            state.withLock { $0.noteAnswer(of: entry) }
        }
    }

    private func finish(_ entry: LaneQueue.Entry, _ answer: Answer, learned: [Change]) {
        let (now, instant) = (core.world.now(), core.world.instant())
        let outcome = core.override(answer, of: entry.push.instance)
        let address = entry.push.message.addressNumber
        if outcome == .accepted { meter.accepted(entry.push, at: now) }
        let random = core.world.random()
        let time = core.clock.reading(now, instant)
        change { state in
            // The clock may have leapt while this push was under way.
            state.doubted = time.isDoubted ? time : nil
            state.noteAnswer(of: entry)
            state.heed(now, instant)
            let entry = state.wallClock.moved(entry)
            var actions = LaneState.Actions()
            let breaker = state.note(
                answer, of: entry, address: address, at: instant, probeEvery: core.limits.probeEvery,
                random: random, &actions)
            var judged = Judgement.of(
                entry.push, answer: answer, outcome: outcome, spares: state.sparesRegistrations(of: entry),
                now: now, doubt: now.since(state.custodyTime(of: entry.push, now)),
                limits: core.limits, random: random, unreached: entry.unreached)
            core.observer.attempted?(Attempt(entry.push, answer, outcome, .init(judged.step), at: now))
            let hasFeedback = !judged.feedback.isEmpty
            judged.feedback += learned + core.unlearned(of: entry.push, judged)
            let again = entry.again(after: answer, breaker, keepsItsRow: judged.step == nil)
            apply(
                judged, waitsForCommit: hasFeedback, to: again, now: now, instant, state: &state, &actions)
            actions.wakesSender = true
            return actions
        }
    }

    /// Carries a judgement into the lane's state, and lists what the loops must do.
    private func apply(
        _ judged: Judgement, waitsForCommit: Bool, to entry: LaneQueue.Entry, now: UnixTime,
        _ instant: ContinuousClock.Instant, state: inout LaneState, _ actions: inout LaneState.Actions
    ) {
        let first = entry.isFirst ? judged.first : nil
        if let first, !waitsForCommit { actions.first.append((entry.push.id, .known(first))) }
        var again = entry
        again.isFirst = false
        if entry.push.custody == .volatile { return state.apply(judged, toVolatile: again, now, &actions) }
        guard var step = judged.step else {
            again.unwritten = first ?? entry.unwritten
            state.putBack(again, now: now, &actions)
            return
        }
        again.unwritten = nil
        if judged.custodyEnds { actions.custodyEnded += 1 }
        if judged.isSpentCall { actions.spentCalls += 1 }
        if case .retry(let notBefore, let attempt, let lane, _) = step, state.keepsNothing {
            step = .retry(notBefore: notBefore, attempt: attempt, lane: lane, parked: true)
        }
        var item = Settler.Item(
            settlement: Settlement(entry.push, step, first: first ?? entry.unwritten),
            feedback: judged.feedback)
        if let first, waitsForCommit {
            // Feedback reaches the registry before the reply leaves.
            let (id, core) = (entry.push.id, core)
            item.committed = { core.firstAttempts.resolve(id, .known(first)) }
        }
        if case .retry(let notBefore, let attempt, _, parked: false) = step {
            again.push.notBefore = notBefore
            again.push.attempt = attempt
            let admitted = state.admit([again], now: now, instant: instant)
            actions.settle += admitted.settle
            actions.first += admitted.first
        }
        actions.settle.insert(item, at: 0)
    }

    private func change(_ body: (inout LaneState) -> LaneState.Actions) { change { ((), body(&$0)) } }

    /// Changes the state and carries out what follows.
    ///
    /// The settler has the steps before anybody else can change the state: a push that came back to memory
    /// and left it at once would else reach the store in the other order, and stand there as held by us,
    /// who do not hold it.
    private func change<Value>(_ body: (inout LaneState) -> (Value, LaneState.Actions)) -> Value {
        let (value, actions, isReplaced) = state.withLock { state in
            let (value, actions) = body(&state)
            core.settler.add(actions.settle)
            return (value, actions, state.isReplaced)
        }
        carryOut(actions, isReplaced: isReplaced)
        return value
    }

    private func report(_ actions: LaneState.Actions) {
        switch actions.breaker {
        case .none: break
        case .halted(let cause):
            core.laneHalted(name, cause, actions.reason)
            meter.halted(true)
        case .resumed, .reopened:
            core.laneResumed(name)
            meter.halted(false)
        }
    }

    /// All but the settlements.
    private func carryOut(_ actions: LaneState.Actions, isReplaced: Bool) {
        if !isReplaced { report(actions) }
        switch actions.breaker {
        case .halted(.credential): credential.set(fault: actions.reason)
        case .resumed: credential.set(fault: nil)
        case .none, .halted(.targets), .reopened: break
        }
        switch actions.reach {
        case .none: break
        case .unanswered:
            core.laneUnanswered(name, actions.reason)
            meter.unanswered(true)
        case .over:
            core.laneAnswered(name)
            meter.unanswered(false)
        }
        if actions.spentCalls > 0 { core.observer.callsSpent(name, actions.spentCalls) }
        // A peer hears of a credential's fault when all its lanes have.
        for (id, outcome) in actions.first { core.firstAttempts.resolve(id, outcome) }
        switch actions.pace {
        case .none: break
        case .slowed:
            core.journal.note("lane slowed", [.lane: name, .reason: actions.reason], level: .warning)
            meter.slowed(true)
        case .atFullSpeed:
            core.journal.note("lane at full speed", [.lane: name])
            meter.slowed(false)
        }
        if actions.custodyEnded > 0 { core.observer.custodyEnded(name, actions.custodyEnded) }
        if actions.volatileEnded > 0 { core.volatile.end(actions.volatileEnded) }
        if actions.volatileEnded > 0 || actions.breaker != .none { drained.ring() }
        if actions.volatileDropped > 0 { core.observer.volatileDropped(name, actions.volatileDropped) }
        if actions.wakesRefill { refill.ring() }
        if actions.wakesSender { sender.ring() }
    }

    private func refillLoop() async {
        while !isStopping, !Task.isCancelled {
            guard let claim = state.withLock({ $0.beginClaim() }) else {
                await refill.wait()
                continue
            }
            await self.claim(claim.room, claim.classes)
        }
    }

    /// Asks the store for what is due; when nothing is, asks again when something will be.
    private func claim(_ room: Int, _ classes: ClosedRange<PushClass>) async {
        let now = core.world.now()
        guard core.reclaim.begin() else {
            return state.withLock {
                $0.endClaim(of: 0, next: now + core.limits.backoffBase, now: now, isLast: false)
            }
        }
        defer { core.reclaim.end() }
        let term = core.lease.term
        var pushes: [OwedPush] = []
        // Unless the store says better: a failure is tried again after the first step of a back-off.
        var (next, isLast) = (now + core.limits.backoffBase, false)
        // All that was due of these classes has been brought.
        var seen: PushClass?
        do {
            pushes = try await core.claims.claim(name, due: now, limit: room, classes: classes)
            if pushes.count == room {
                next = now
                seen = pushes.last.flatMap { PushClass(above: $0.pushClass) }
            } else if let due = try await core.claims.nextDue(name) {
                next = due
                seen = classes == .urgent ... .background ? nil : classes.upperBound
                if due.since(now) > state.withLock(\.longestWait) {
                    // Put off by a clock that has been set back since: all that waits is due.
                    pushes += try await core.claims.claim(
                        name, due: due, limit: room - pushes.count, classes: classes)
                    next = now
                }
            } else {
                (next, isLast) = (now, true)
            }
        } catch {
            // What was claimed before it is ours.
            core.journal.note("claim failed", [.lane: name, .code: ErrorCode(error)], level: .error)
            core.reclaim.note(error)
        }
        let (unknown, ended) = core.settler.recall(pushes)
        core.settler.add(ended)
        let entries = unknown.map {
            LaneQueue.Entry(push: $0, isFirst: $0.attempt == 0, environmentKnown: false, term: term)
        }
        let instant = core.world.instant()
        change { state in
            state.endClaim(of: pushes.count, next: next, allSeen: seen, now: now, isLast: isLast)
            var actions = state.admit(entries, now: now, instant: instant)
            // What came due while the store was asked need not wait for the next tick.
            state.refillIfLow(now: core.world.now(), &actions)
            return actions
        }
    }
}

extension ProviderMessage {
    /// A number that is the same for the same address, and another for others but by chance; of this process
    /// alone.
    var addressNumber: Int {
        address.reveal { bytes in
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            return hasher.finalize()
        }
    }
}
