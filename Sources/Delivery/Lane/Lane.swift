import PushModel
import Synchronization

/// One way out: queue, breaker, sender and refill loops over one provider.
///
/// ``LaneState`` makes all decisions, under a lock that is never held across a wait; the loops carry them
/// out.
final class Lane<P: Provider>: LaneHandle {
    let name: LaneName
    let provider: P
    let core: DeliveryCore
    let credential: Credential
    let state: Mutex<LaneState>
    let sender = Bell()
    let refill = Bell()
    private let stopped = Bell()
    let drained = Bell()
    let senders = LaneSenders()
    let meter: LaneMeter
    /// The lane's identity at its service; `nil`: not known.
    private let identity: Secret?
    /// The store knows that something was accepted under it.
    private let isProven: Atomic<Bool>
    /// Leave to lease volatile pushes; `nil` for a provider that is not direct.
    private let leave: DirectLeave?

    /// - Parameter handsBack: it is made while ``Reclaim`` is under way.
    /// - Parameter identity: a digest of what it is at its service: credential, project, environment.
    convenience init(
        provider: P, credential: Credential, identity: Secret?, core: DeliveryCore, handsBack: Bool
    ) {
        self.init(provider, nil, credential, identity, core, handsBack)
    }

    convenience init(
        direct provider: P, credential: Credential, identity: Secret?, core: DeliveryCore, handsBack: Bool
    ) where P: DirectProvider {
        self.init(provider, DirectLeave(of: provider), credential, identity, core, handsBack)
    }

    private init(
        _ provider: P, _ leave: DirectLeave?, _ credential: Credential, _ identity: Secret?,
        _ core: DeliveryCore, _ handsBack: Bool
    ) {
        self.identity = identity
        isProven = Atomic(identity == nil)
        name = provider.lane
        self.provider = provider
        self.leave = leave
        self.core = core
        self.credential = credential
        meter = LaneMeter(provider.lane)
        state = Mutex(
            LaneState(
                limits: core.limits, of: provider.lane.service, handsBack: handsBack,
                isProven: identity == nil))
    }

    func wouldHold(_ pushClass: PushClass, origin: Digest16, address: () -> Int) -> Bool {
        state.withLock { $0.wouldHold(pushClass, origin: origin, address: address) }
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

    var moment: LaneMoment {
        let (now, instant) = (core.world.now(), core.world.instant())
        return LaneMoment(
            now: now, instant: instant, clock: core.clock.reading(now, instant),
            proofs: credential.proofs(in: name.environment))
    }

    var noted: Int { state.withLock(\.noted) }

    func correct(parked: Int, hasGained: Bool, notedBefore: Int) {
        state.withLock { $0.correct(parked: parked, hasGained: hasGained, notedBefore: notedBefore) }
        core.ticks.wake()
    }

    func landed(_ pushClass: PushClass, due: UnixTime) {
        state.withLock { $0.noteParked(pushClass, due: due) }
        core.ticks.wake()
    }

    func putOff(_ pushes: [(pushClass: PushClass, due: UnixTime)]) {
        state.withLock { state in for (pushClass, due) in pushes { state.putOff(pushClass, due: due) } }
        core.ticks.wake()
    }

    func snapshot() -> LaneSnapshot {
        let figures = provider.figures()
        return state.withLock { $0.snapshot(of: name, figures) }
    }

    func stop() {
        provider.windDown(within: core.limits.drain)
        cease()
    }

    /// Starts nothing more.
    private func cease() {
        // At once, so that a lane that replaces this one need not wait for our last answers.
        let until = core.world.instant() + core.limits.volatileDrain
        let now = core.world.now()
        change { $0.stop(drainUntil: until, now: now) }
        sender.ring()
        refill.ring()
        stopped.ring()
    }

    /// Stops as a lane that a reload replaces or removes: its halt is no longer reported.
    func giveWay() {
        let wasHalted = state.withLock { $0.giveWay() }
        cease()
        guard wasHalted else { return }
        meter.halted(false)
        core.haltedLaneLeft(name)
    }

    func hurry() {
        let now = core.world.now()
        change { $0.hurry(now: now) }
    }

    func handBack(_ handsBack: Bool) { change { $0.handBack(handsBack) } }

    func revoke(_ pushes: Set<PushID>) {
        let ended = state.withLock { $0.revoke(pushes) }
        guard let counted = core.observer.counted, !ended.isEmpty else { return }
        let now = core.world.now()
        for record in ended { counted(record, .replaced, .ok, now) }
    }

    func keep(_ pushes: [OwedPush], term: Int) -> [OwedPush] {
        state.withLock { $0.rowsUnderWay.keep(pushes, term: term) }
    }

    func comeBack(_ entry: LaneQueue.Entry, isOurs: Bool) {
        let (now, instant) = (core.world.now(), core.world.instant())
        change { $0.comeBack(entry, isOurs: isOurs, now: now, instant: instant) }
    }

    var isSending: Bool { state.withLock(\.isSendingDurable) }

    /// Sends until stopped; then what is volatile, for a bounded while; then waits for what is under way
    /// (each request has its own deadline), and leaves the rest to the store.
    func run() async {
        await withTaskExecutorPreference(provider.executor) { await runHere() }
    }

    private func runHere() async {
        let proof = await lastProof()
        state.withLock { $0.begin(term: core.lease.term, isProven: proof) }
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

    /// Whether the store knows of an acceptance under the same configuration. If the store cannot be asked,
    /// the answer is no, and no registration is blamed until the next acceptance.
    private func lastProof() async -> Bool {
        guard let identity else { return true }
        let found: [Record?]
        do { found = try await core.registry.find([LaneProof.key(name)]) } catch {
            core.journal.note(
                "last acceptance not read", [.lane: name, .code: ErrorCode(error)], level: .warning)
            return false
        }
        guard let proof = found.first ?? nil, proof.body == identity else { return false }
        isProven.store(true, ordering: .relaxed)
        return true
    }

    /// What the store is to remember of a first acceptance. It is returned once, so the caller must write it.
    func proof(of answer: Answer, to push: OwedPush, at now: UnixTime) -> [Change] {
        guard answer.outcome.isAccepted, push.isDurable, let identity,
            !isProven.exchange(true, ordering: .relaxed)
        else { return [] }
        return [.put(LaneProof.record(name, identity, now: now), if: .any)]
    }

    private var isDrained: Bool {
        let instant = core.world.instant()
        return state.withLock { $0.isDrained(instant) }
    }

    private func runProvider() async {
        do { try await provider.run() } catch is CancellationError {
            return
        } catch {
            // A provider ends only when cancelled; any other end is logged, and the lane goes on with its
            // probes.
            core.journal.note("provider ended", [.lane: name], level: .error)
        }
    }

    private var isStopping: Bool { state.withLock(\.isStopping) }

    private func sendLoop(_ sends: inout DiscardingTaskGroup) async {
        defer { senders.close() }
        // A stop ends it by cancelling, once the volatile pushes are gone.
        while !Task.isCancelled {
            let (now, instant) = (core.world.now(), core.world.instant())
            guard state.withLock({ $0.hasWork(now: now, instant: instant) }), mayLeave() else {
                await sender.wait()
                continue
            }
            // The slot first, then the push: a call that arrives while we wait for a stream still goes first.
            var free = provider.reserveAtOnce()
            // Thrown only by cancellation.
            if free == nil { free = try? await provider.reserve() }
            guard let slot = free else { return }
            guard let work = next(on: slot) else {
                slot.release()
                // The pushes here were put off or given back meanwhile. The tick rings if there are more.
                await sender.wait()
                continue
            }
            if !senders.give(work) {
                sends.addTask { await self.senders.work() }
            }
        }
    }

    /// Whether the next push may leave, as far as the settler has room for its outcome.
    private func mayLeave() -> Bool {
        switch core.settler.leave() {
        case .everything: true
        case .urgent: state.withLock(\.hasUrgent)
        case .nothing: false
        }
    }

    /// The sending of the most urgent push, with the lease checked at this moment.
    ///
    /// Not async, and not the push itself: an entry is large, and one that the loop has is copied there.
    private func next(on slot: P.Slot) -> LaneSenders.Work? {
        let moment = moment
        let grant = core.lease.grant(at: moment.instant)
        var (found, ranOut) = (LaneQueue.Entry?.none, 0)
        change { state, actions in
            found = state.next(
                at: moment, term: grant?.term, isRevoked: core.revoked.contains, &actions)
            ranOut = actions.ranOut
        }
        if ranOut > 0 { core.journal.note("lease ran out", [.lane: name, .count: ranOut], level: .warning) }
        // Taken out: an entry is large.
        guard let entry = found.take() else { return nil }
        if entry.push.isDurable {
            guard let grant else { return nil }
            let lease = LeasedPush(granting: entry.push, sendBefore: grant.sendBefore)
            return { await self.send(entry, lease, on: slot) }
        }
        guard let leave else { return nil }
        // No other process can own a push that is only in our memory.
        let latest = moment.instant + core.limits.requestDeadline
        let lease = LeasedPush(granting: entry.push, to: leave, sendBefore: latest)
        return { await self.send(entry, lease, on: slot) }
    }

    private func send(_ entry: LaneQueue.Entry, _ lease: LeasedPush, on slot: P.Slot) async {
        let answer = await provider.send(lease, on: slot)
        meter.answered(answer)
        if Breaker.provesCredential(answer) { credential.proved(in: name.environment) }
        let goesBack =
            if core.mayTeach(entry) { await teach(answer, of: entry) } else { ends(entry, answer) }
        if goesBack { return }
        if answer.late != nil { await hearLate(after: answer, of: entry) }
    }

    func change(_ body: (inout LaneState) -> LaneState.Actions) {
        change { state, actions in actions = body(&state) }
    }

    /// Changes the state and carries out what follows.
    ///
    /// Every push passes here. The code of a lane is shared by all providers, and a value of a generic type
    /// would cost metadata look-ups and copies for each push, so this function returns none.
    func change(_ body: (inout LaneState, inout LaneState.Actions) -> Void) {
        var actions = LaneState.Actions()
        let isReplaced = state.withLock { state in
            state.hasChanged = true
            body(&state, &actions)
            settle(&actions)
            return state.isReplaced
        }
        core.ticks.wake()
        carryOut(actions, isReplaced: isReplaced)
    }

    /// The same with a value, for rare changes.
    func change<Value>(_ body: (inout LaneState) -> (Value, LaneState.Actions)) -> Value {
        let (value, actions, isReplaced) = state.withLock { state in
            state.hasChanged = true
            var (value, actions) = body(&state)
            settle(&actions)
            return (value, actions, state.isReplaced)
        }
        core.ticks.wake()
        carryOut(actions, isReplaced: isReplaced)
        return value
    }

    /// The settler gets the steps before anybody else can change the state. Otherwise a push that came back
    /// to memory and left it at once could reach the store in the wrong order, and its row would say that we
    /// hold it when we do not.
    private func settle(_ actions: inout LaneState.Actions) {
        if actions.custodyEnded > 0 { countExpired(actions) }
        for index in actions.settle.indices {
            guard let again = actions.settle[index].rest.again else { continue }
            actions.settle[index].rest.again = Settler.Return(again.entry, to: self)
        }
        core.settler.add(actions.settle)
    }

    /// An event in which custody ends settles no push in another way.
    private func countExpired(_ actions: LaneState.Actions) {
        guard let counted = core.observer.counted else { return }
        let now = core.world.now()
        for index in actions.settle.indices {
            let settlement = actions.settle[index].settlement
            guard let record = settlement.push.record else { continue }
            switch settlement.step {
            case .settle, .withdraw: counted(record, .expired, .custodyEnded, now)
            case .retry, .park: break
            }
        }
    }

    private func refillLoop() async {
        while !isStopping, !Task.isCancelled {
            let now = core.world.now()
            guard let claim = state.withLock({ $0.beginClaim(now: now) }) else {
                await refill.wait()
                continue
            }
            await carryOut(claim)
        }
    }

    /// Asks the store for what is due; when nothing is, asks again when something will be.
    private func carryOut(_ begun: LaneClaim) async {
        guard core.reclaim.begin() else { return state.withLock { $0.abandon(begun) } }
        defer { core.reclaim.end() }
        let term = core.lease.term
        var claim = begun
        do {
            let due = try await core.claims.claim(
                name, due: claim.begun, limit: claim.room, classes: claim.classes)
            if claim.bring(due), let late = claim.wait(until: try await core.claims.nextDue(name)) {
                claim.bringLate(
                    try await core.claims.claim(
                        name, due: late.due, limit: late.limit, classes: claim.classes))
            }
        } catch {
            // What was claimed before it is ours.
            core.journal.note("claim failed", [.lane: name, .code: ErrorCode(error)], level: .error)
            core.reclaim.note(error)
        }
        // In this order: the settler no longer has the end of what is under way.
        let (unknown, ended) = core.settler.recall(core.keepUnderWay(claim.pushes, term: term))
        core.settler.add(ended)
        let entries = unknown.map { LaneQueue.Entry(claimed: $0, term: term) }
        let (now, instant) = (core.world.now(), core.world.instant())
        change { [claim] in $0.claimed(claim, entries, now: now, instant: instant) }
    }
}
