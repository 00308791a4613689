package import PushModel
import Synchronization

/// A lane as the rest of the core sees it, whatever its provider.
protocol LaneDoor: AnyObject, Sendable {
    var name: LaneName { get }
    func wouldHold(_ pushClass: PushClass, origin: Digest16) -> Bool
    /// `nil`: nobody should wait for a first attempt here.
    func expectedWait() -> Duration?
    func admit(_ entries: [LaneQueue.Entry], parked: Int)
    func tick(seconds: Double)
    /// The store's own count of this lane's parked pushes.
    func correct(parked: Int)
    func setCredential(halted: Bool)
    func snapshot() -> LaneSnapshot
    func run() async
    func stop()
}

/// What an operator may see of a lane.
package struct LaneSnapshot: Sendable {
    package var lane: LaneName
    package var isHalted: Bool
    package var haltedFor: Breaker.Cause?
    /// The literal reason of the last answer that was no acceptance, until the next one.
    package var reason: Reason?
    package var inMemory: Int
    package var parked: Int
    package var inFlight: Int
}

/// One way out: queue, breaker, sender and refill loops over one provider.
///
/// All decisions are made in ``LaneState`` under a lock that is held for no wait; the loops carry them out.
final class Lane<P: Provider>: LaneDoor {
    let name: LaneName
    private let provider: P
    private let core: DeliveryCore
    private let credential: Credential
    private let state: Mutex<LaneState>
    private let sender = Bell()
    private let refill = Bell()
    private let stopped = Bell()
    private let meter: LaneMeter

    init(provider: P, credential: Credential, core: DeliveryCore) {
        name = provider.lane
        self.provider = provider
        self.core = core
        self.credential = credential
        meter = LaneMeter(provider.lane)
        var initial = LaneState(limits: core.limits)
        if credential.isHalted { initial.breaker.haltForCredential() }
        state = Mutex(initial)
    }

    func wouldHold(_ pushClass: PushClass, origin: Digest16) -> Bool {
        state.withLock { $0.queue.wouldHold(pushClass, origin: origin) }
    }

    func expectedWait() -> Duration? { state.withLock { $0.expectedWait() } }

    func admit(_ entries: [LaneQueue.Entry], parked: Int) {
        let now = core.world.now()
        carryOut(
            state.withLock { state in
                state.noteParked(parked)
                return state.admit(entries, now: now)
            })
    }

    func tick(seconds: Double) {
        let (now, instant) = (core.world.now(), core.world.instant())
        let (actions, snapshot) = state.withLock { state in
            (state.tick(now: now, instant: instant, seconds: seconds), (state.queue.count, state.parked))
        }
        meter.backlog(inMemory: snapshot.0, parked: snapshot.1)
        carryOut(actions)
    }

    func correct(parked: Int) { state.withLock { $0.parked = parked } }

    func setCredential(halted: Bool) {
        let probe = core.world.instant() + core.limits.probeEvery
        state.withLock { state in
            if halted {
                state.breaker.haltForCredential()
                state.nextProbe = state.nextProbe ?? probe
            } else {
                state.breaker.resumeFromCredential()
                state.nextProbe = nil
            }
        }
        meter.halted(halted)
        sender.ring()
    }

    func snapshot() -> LaneSnapshot {
        state.withLock { state in
            var cause: Breaker.Cause?
            if case .halted(let why) = state.breaker.state { cause = why }
            return LaneSnapshot(
                lane: name, isHalted: cause != nil, haltedFor: cause, reason: state.lastFault,
                inMemory: state.queue.count,
                parked: state.parked, inFlight: state.inFlight)
        }
    }

    func stop() {
        state.withLock { $0.isStopping = true }
        sender.ring()
        refill.ring()
        stopped.ring()
    }

    /// Sends until stopped, then waits for what is under way (each request has its own deadline), and leaves
    /// the rest to the store.
    func run() async {
        await withTaskGroup(of: Void.self) { support in
            support.addTask { await self.runProvider() }
            support.addTask { await self.refillLoop() }
            await withTaskGroup(of: Void.self) { sending in
                sending.addTask { await withDiscardingTaskGroup { sends in await self.sendLoop(&sends) } }
                await self.stopped.wait()
                // Ends a wait for a stream; requests under way do not end by cancellation (see `Provider`).
                sending.cancelAll()
            }
            support.cancelAll()
        }
        carryOut(state.withLock { $0.dropMemory() })
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
        while !isStopping, !Task.isCancelled {
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
        guard let sendBefore = core.lease.sendBefore() else {
            let actions = state.withLock { $0.dropMemory() }
            if !actions.settle.isEmpty {
                core.journal.note(
                    "lease ran out", [.lane: name, .count: actions.settle.count], level: .warning)
            }
            carryOut(actions)
            return nil
        }
        let (now, instant) = (core.world.now(), core.world.instant())
        let (entry, actions) = state.withLock { state in
            state.take(now: now, instant: instant, probeEvery: core.limits.probeEvery)
        }
        carryOut(actions)
        return entry.map { ($0, LeasedPush(granting: $0.push, sendBefore: sendBefore)) }
    }

    private func send(_ entry: LaneQueue.Entry, _ lease: LeasedPush, on slot: P.Slot) async {
        let answer = await provider.send(lease, on: slot)
        meter.answered(answer)
        switch await core.learned(from: answer, for: entry) {
        case .nothing: carryOut(finish(entry, answer, learned: []))
        case .change(let change): carryOut(finish(entry, answer, learned: [change]))
        case .goesOn(let other):
            state.withLock { state in
                state.inFlight -= 1
                state.answersInTick += 1
            }
            var moved = entry
            moved.push.lane = other.name
            other.admit([moved], parked: 0)
        }
    }

    private func finish(_ entry: LaneQueue.Entry, _ answer: Answer, learned: [Change]) -> LaneState.Actions {
        let now = core.world.now()
        let outcome = core.override(answer, of: entry.push.instance)
        let address = entry.push.message.address.reveal { bytes in
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            return hasher.finalize()
        }
        let probe = core.world.instant() + core.limits.probeEvery
        let random = core.world.random()
        return state.withLock { state in
            state.inFlight -= 1
            state.answersInTick += 1
            var actions = LaneState.Actions()
            actions.breaker = state.breaker.note(answer, address: address)
            actions.reason = answer.reason
            state.lastFault = answer.outcome == .accepted ? nil : answer.reason
            if case .halted = actions.breaker { state.nextProbe = probe }
            var judged = Judgement.of(
                entry.push, answer: answer, outcome: outcome, spares: state.breaker.sparesRegistrations,
                now: now,
                limits: core.limits, random: random)
            let hasFeedback = !judged.feedback.isEmpty
            judged.feedback += learned
            apply(judged, waitsForCommit: hasFeedback, to: entry, now: now, state: &state, &actions)
            actions.wakesSender = true
            return actions
        }
    }

    /// Carries a judgement into the lane's state, and lists what the loops must do.
    private func apply(
        _ judged: Judgement, waitsForCommit: Bool, to entry: LaneQueue.Entry, now: UnixTime,
        state: inout LaneState, _ actions: inout LaneState.Actions
    ) {
        let first = entry.isFirst ? judged.first : nil
        if let first, !waitsForCommit { actions.first.append((entry.push.id, .known(first))) }
        var again = entry
        again.isFirst = false
        guard let step = judged.step else {
            state.queue.putBack(again)
            return
        }
        var item = Settler.Item(
            settlement: Settlement(entry.push, step, first: first), feedback: judged.feedback)
        if let first, waitsForCommit {
            // Feedback reaches the registry before the reply leaves.
            let (id, core) = (entry.push.id, core)
            item.committed = { core.firstAttempts.resolve(id, .known(first)) }
        }
        if case .retry(let notBefore, let attempt, _, let parked) = step {
            again.push.notBefore = notBefore
            again.push.attempt = attempt
            if parked || state.isStopping {
                state.parked += 1
                state.claimNotBefore = min(state.claimNotBefore, notBefore)
            } else {
                let admitted = state.admit([again], now: now)
                actions.settle += admitted.settle
                actions.first += admitted.first
            }
        }
        actions.settle.insert(item, at: 0)
    }

    private func carryOut(_ actions: LaneState.Actions) {
        core.settler.add(actions.settle)
        for (id, outcome) in actions.first { core.firstAttempts.resolve(id, outcome) }
        switch actions.breaker {
        case .none: break
        case .halted(let cause):
            core.laneHalted(name, cause, actions.reason)
            meter.halted(true)
            if cause == .credential { credential.set(halted: true) }
        case .resumed:
            core.laneResumed(name)
            meter.halted(false)
            credential.set(halted: false)
        }
        if actions.wakesRefill { refill.ring() }
        if actions.wakesSender { sender.ring() }
    }

    private func refillLoop() async {
        while !isStopping, !Task.isCancelled {
            let (room, known) = state.withLock { state in
                (state.isClaiming ? state.queue.limit - state.queue.count : nil, state.parked)
            }
            guard let room else {
                await refill.wait()
                continue
            }
            await claim(room, known: known)
        }
    }

    /// Asks the store for what is due; when nothing is, asks again when something will be.
    private func claim(_ room: Int, known: Int) async {
        let now = core.world.now()
        do {
            let pushes = try await core.outbox.claim(name, due: now, limit: max(room, 1))
            var claimNotBefore = now
            var isLast = false
            if pushes.count < room {
                let due = try await core.outbox.nextDue(name)
                claimNotBefore = due ?? now
                isLast = due == nil
            }
            let entries = pushes.map {
                LaneQueue.Entry(push: $0, isFirst: $0.attempt == 0, environmentKnown: false)
            }
            let actions = state.withLock { state in
                state.isClaiming = false
                // Pushes may have been parked, and the store's own count taken in, while we asked: what we do not
                // know to be gone is asked for once more.
                state.parked = isLast ? max(state.parked - known, 0) : max(state.parked - pushes.count, 1)
                state.claimNotBefore = claimNotBefore
                return state.admit(entries, now: now)
            }
            carryOut(actions)
        } catch {
            core.journal.note("claim failed", [.lane: name, .code: ErrorCode(error)], level: .error)
            state.withLock { state in
                state.isClaiming = false
                state.claimNotBefore = now + core.limits.backoffBase
            }
        }
    }
}
