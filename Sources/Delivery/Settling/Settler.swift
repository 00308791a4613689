package import PushModel
import Synchronization

/// Joins settlements into commits.
///
/// Answers come one by one, thousands a second; a commit for each would cost more than the sending. The
/// backlog is bounded by ``leave()``: lanes stop sending until the store has caught up, which they see at the
/// next tick.
///
/// A settlement that the store refuses while it takes others is stuck: it is tried separately, so that it
/// delays none of them. A refusal that lasts longer than a lease's renewal is a fault of the store, because
/// everything that was sent since would be sent again after a restart (decision 0084).
final class Settler: Sendable {
    /// A push that is tried again, for the lane from which it comes, once the store has said that it is still
    /// owed and ours.
    ///
    /// A class: few pushes come back, and every settlement is moved about several times.
    final class Return: Sendable {
        let entry: LaneQueue.Entry
        /// `nil` until the lane is known, which is before the settler has it.
        let lane: (any LaneReturn)?

        init(_ entry: LaneQueue.Entry, to lane: (any LaneReturn)? = nil) {
            self.entry = entry
            self.lane = lane
        }
    }

    /// Who is told of commits.
    struct Hearers: Sendable {
        /// Rows may have gone.
        var settled: @Sendable () -> Void
        /// First outcomes that waited for their commit. A push that belonged to another process when it was
        /// to be withdrawn goes on there, so it is pending.
        var known: @Sendable (PushID, FirstOutcome) -> Void
        /// Each push that the store now holds as parked.
        var landed: @Sendable (LaneName, PushClass, UnixTime) -> Void
    }

    /// What lanes may send while outcomes wait for the store.
    enum Leave: Sendable { case everything, urgent, nothing }

    private enum Place { case main, stuck }

    private struct State {
        var main: SettleQueue
        /// Settlements that failed alone.
        var stuck: SettleQueue
        /// Since when something is stuck.
        var stuckSince: ContinuousClock.Instant?
        /// Since when the store has taken nothing although it was asked to.
        var refusedSince: ContinuousClock.Instant?
        /// How often in a row; each time with other rows, if the error may concern the rows.
        var refusals = 0
        var code = StoreError.Code.unavailable
        /// When one push may leave although the store takes no outcomes.
        var trialAt: ContinuousClock.Instant?
        var isClosed = false
        /// How pushes ended that belonged to another process when the store was told; the oldest entries are
        /// dropped first.
        var endings: [PushID: Ending] = [:]
        var endingsInOrder = Fifo<PushID>()

        var count: Int { main.count + stuck.count }
        var isRefused: Bool { refusedSince != nil || stuckSince != nil }

        subscript(_ place: Place) -> SettleQueue {
            get { place == .main ? main : stuck }
            _modify { if place == .main { yield &main } else { yield &stuck } }
        }
    }

    private struct Ending {
        let step: Settlement.Step
        let first: OutcomeKind?
    }

    private let state: Mutex<State>
    private let bell = Bell()
    private let stuckBell = Bell()
    private let store: any Settling
    private let limits: DeliveryLimits
    private let world: World
    private let journal: Journal

    /// The number of rows in a row that the store must refuse before the fault is the store's and not the
    /// rows'.
    private static let witnesses = 3

    init(store: any Settling, limits: DeliveryLimits, world: World, journal: Journal) {
        self.store = store
        self.limits = limits
        self.world = world
        self.journal = journal
        let queue = SettleQueue(widest: limits.settleBatch)
        state = Mutex(State(main: queue, stuck: queue))
    }

    // MARK: what waits

    /// All that wait.
    var backlog: Int { state.withLock(\.count) }
    /// Those that wait for another reason than a refusal of the store.
    var underWay: Int { state.withLock(\.main.count) }

    /// Outcomes that the store has refused for longer than a renewal takes; `nil` while it takes them.
    var unsettled: UnsettledOutcomes? {
        let now = world.instant()
        return state.withLock { state in
            let since = [state.refusedSince, state.stuckSince].compactMap(\.self).min()
            guard let since, now - since >= limits.renewEvery else { return nil }
            return UnsettledOutcomes(code: state.code, count: state.count)
        }
    }

    /// Asked before each push. While the store takes no outcome at all, calls still leave, because nobody
    /// wants a call later, and one other push in the span of a renewal, to see whether the store takes its
    /// outcome.
    func leave() -> Leave {
        state.withLock { state in
            if isFull(state) { return .nothing }
            // Nearly always nothing is refused; then the time is not needed.
            guard state.refusedSince != nil else { return .everything }
            let now = world.instant()
            guard isBlocked(state, now) else { return .everything }
            if let trial = state.trialAt, now < trial { return .urgent }
            state.trialAt = now + limits.renewEvery
            return .everything
        }
    }

    /// Whether lanes wait for the store.
    var holdsBack: Bool {
        let now = world.instant()
        return state.withLock { isFull($0) || isBlocked($0, now) }
    }

    private func isFull(_ state: State) -> Bool {
        // The count first: it is rarely so high, and each push asks.
        state.count >= limits.settleBacklog || state.count >= limits.refusedBacklog && state.isRefused
    }

    private func isBlocked(_ state: State, _ now: ContinuousClock.Instant) -> Bool {
        guard let since = state.refusedSince, state.refusals >= Self.witnesses else { return false }
        return now - since >= limits.renewEvery
    }

    func add(_ items: some Collection<Item>) {
        guard !items.isEmpty else { return }
        state.withLock { state in
            guard !state.stuck.isEmpty else { return state.main.append(items) }
            // The settlements of one push must stay in order.
            let stuck = Set(state.stuck.items.map(\.settlement.push.id))
            state.main.append(items.filter { !stuck.contains($0.settlement.push.id) })
            state.stuck.append(items.filter { stuck.contains($0.settlement.push.id) })
        }
        bell.ring()
    }

    /// Finds, among pushes that the store has just given out, those whose end is known here: their answers
    /// came while they belonged to another process, or have not reached the store yet. None of them must be
    /// sent again.
    ///
    /// A withdrawal that has not reached the store yet is not made, and replies that wait for it are told
    /// that the push is owed. Until then it waits in the store.
    ///
    /// - Returns: the others, and what settles these in the name that they have now, or gives them back.
    func recall(_ pushes: [OwedPush]) -> (unknown: [OwedPush], ended: [Item]) {
        guard !pushes.isEmpty else { return ([], []) }
        let ids = Set(pushes.map(\.id))
        let known = state.withLock { state in
            var known: [PushID: Ending] = [:]
            for queue in [state.main, state.stuck] {
                for item in queue.items where item.settlement.step.isEnd {
                    let id = item.settlement.push.id
                    guard ids.contains(id) else { continue }
                    let isMade = item.settlement.step != .withdraw
                    known[id] = Ending(
                        step: isMade ? item.settlement.step : .park,
                        first: isMade ? item.settlement.first : nil)
                }
            }
            if !state.endings.isEmpty { for id in ids { known[id] = state.endings[id] ?? known[id] } }
            return known
        }
        guard !known.isEmpty else { return (pushes, []) }
        var ended: [Item] = []
        var unknown: [OwedPush] = []
        for push in pushes {
            if let ending = known[push.id] {
                ended.append(Item(Settlement(push, ending.step, first: ending.first)))
            } else {
                unknown.append(push)
            }
        }
        return (unknown, ended)
    }

    /// Ends `run` once everything is settled.
    func close() {
        state.withLock { $0.isClosed = true }
        bell.ring()
    }

    // MARK: settling

    /// Settles until closed, in a cancelled task too: answers are owed to their pushes.
    func run(_ hearers: Hearers) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.settleStuck(hearers) }
            await self.settleAll(hearers)
            // Stuck settlements are tried once more. Then their rows stay, and the next start owes them.
            group.cancelAll()
        }
    }

    private func settleAll(_ hearers: Hearers) async {
        while true {
            let batch = state.withLock { $0.main.next() }
            if batch.isEmpty {
                if state.withLock({ $0.isClosed && $0.main.isEmpty }) { return }
                await bell.waitThroughCancellation()
                continue
            }
            do throws(StoreError) {
                try await settle(batch, .main, hearers)
            } catch {
                let wait = refused(batch, error)
                // Cancelled or closed in the middle of an outage: the rows stay, and the next start owes
                // them.
                if state.withLock({ $0.isClosed && $0.main.failures > 3 }) { return }
                guard let wait else { continue }
                do { try await world.sleep(world.instant() + wait) } catch { return }
            }
        }
    }

    /// Settles, separately, what the store refuses while it takes others.
    private func settleStuck(_ hearers: Hearers) async {
        var isLastTry = false
        while true {
            let failures = state.withLock { $0.stuck.isEmpty ? nil : $0.stuck.failures }
            guard let failures else {
                if Task.isCancelled { return }
                await stuckBell.wait()
                continue
            }
            if failures > 0 {
                do {
                    try await world.sleep(world.instant() + backoff(failures))
                } catch {
                    // Ended early by a cancellation.
                    isLastTry = true
                }
            }
            let batch = state.withLock { $0.stuck.next() }
            do throws(StoreError) {
                try await settle(batch, .stuck, hearers)
            } catch {
                note(error, batch)
                state.withLock { state in
                    state.code = error.code
                    if !state.stuck.failed(batch.count, error.code), batch.count == 1 { state.stuck.rotate() }
                }
                if isLastTry || Task.isCancelled { return }
            }
        }
    }

    private func settle(
        _ batch: SettleQueue.Batch, _ place: Place, _ hearers: Hearers
    ) async throws(StoreError) {
        var feedback: [Change] = []
        // Most have none, and joining is not free.
        for index in batch.indices where !batch.rests[index].feedback.isEmpty {
            feedback += batch.rests[index].feedback
        }
        let ours = try await store.settle(batch.settlements, feedback: feedback)
        takeOut(batch, ours, place)
        hearers.settled()
        // Without copies: a settlement is large, and for most there is nobody to tell.
        for (index, isOurs) in zip(batch.indices, ours) {
            if let first = batch.rests[index].first {
                let goesOn = !isOurs && batch.goesOn(index)
                hearers.known(batch.settlements[index].push.id, goesOn ? .pending : .known(first))
            }
            if let again = batch.rests[index].again { again.lane?.comeBack(again.entry, isOurs: isOurs) }
            if isOurs, let (lane, due) = batch.settlements[index].parks {
                hearers.landed(lane, batch.settlements[index].push.pushClass, due)
            }
        }
    }

    /// Takes out what the store has taken, and remembers the ends that it did not take, because the pushes
    /// belonged to another process or the store had been told before. In one step, so that at every moment an
    /// end is in one of the two.
    ///
    /// A push that was to be withdrawn has not ended: its sender is told that it is owed.
    private func takeOut(_ batch: SettleQueue.Batch, _ ours: [Bool], _ place: Place) {
        state.withLock { state in
            state[place].settled(batch.count)
            (state.refusedSince, state.refusals, state.trialAt) = (nil, 0, nil)
            if state.stuck.isEmpty { state.stuckSince = nil }
            for (index, isOurs) in zip(batch.indices, ours)
            where !isOurs && batch.settlements[index].step.isEnd {
                if batch.goesOn(index) { continue }
                let settlement = batch.settlements[index]
                let id = settlement.push.id
                let ending = Ending(step: settlement.step, first: settlement.first)
                guard state.endings.updateValue(ending, forKey: id) == nil else { continue }
                state.endingsInOrder.append(id)
                // A process that was cut off from the store has at most a full backlog of them.
                if state.endings.count > limits.settleBacklog, let oldest = state.endingsInOrder.popFirst() {
                    state.endings[oldest] = nil
                }
            }
        }
    }

    /// The store has refused a batch of the main queue.
    ///
    /// - Returns: how long to wait; `nil`: fewer, or others, are tried at once.
    private func refused(_ batch: SettleQueue.Batch, _ error: StoreError) -> Duration? {
        note(error, batch)
        let now = world.instant()
        let (refusals, isStuck) = state.withLock { state -> (Int?, Bool) in
            state.code = error.code
            state.refusedSince = state.refusedSince ?? now
            if state.main.failed(batch.count, error.code) { return (nil, false) }
            state.refusals += 1
            guard batch.count == 1, error.code.mayBlameOneRow else { return (state.refusals, false) }
            state.stuckSince = state.stuckSince ?? state.refusedSince
            state.stuck.takeOver(state.main.takeFirst())
            return (state.refusals, true)
        }
        if isStuck { stuckBell.ring() }
        guard let refusals, !isStuck || refusals >= Self.witnesses else { return nil }
        return backoff(refusals)
    }

    private func note(_ error: StoreError, _ batch: SettleQueue.Batch) {
        journal.note("settling failed", [.code: ErrorCode(error), .rows: batch.count], level: .error)
    }

    private func backoff(_ failures: Int) -> Duration {
        Backoff(base: .milliseconds(100), cap: .seconds(5), floorCap: .zero)
            .delay(afterAttempt: failures, asked: nil, random: world.random())
    }
}

/// Outcomes that the store does not take: the next owner would send their pushes again.
package struct UnsettledOutcomes: Sendable, Hashable {
    /// What it said last.
    package var code: StoreError.Code
    package var count: Int
}

extension Settlement.Step {
    /// The push must not be sent again.
    fileprivate var isEnd: Bool {
        switch self {
        case .settle, .withdraw: true
        case .retry, .park: false
        }
    }
}

extension Settlement {
    /// Where and when the store may give the push out again, if this step returns it.
    fileprivate var parks: (lane: LaneName, due: UnixTime)? {
        switch step {
        case .park: (push.lane, push.notBefore)
        case .retry(let notBefore, _, let lane, parked: true): (lane, notBefore)
        case .retry, .settle, .withdraw: nil
        }
    }
}
