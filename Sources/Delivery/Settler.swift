package import PushModel
import Synchronization

/// Joins settlements into commits.
///
/// Answers come one by one and thousands a second; a commit for each would cost more than the sending. The
/// backlog is bounded by ``leave()``: lanes stop sending until the store has caught up, which they see at the
/// next tick.
///
/// A settlement that the store refuses while it takes others is stuck: it is tried beside them, so that it
/// holds up none. What is refused for longer than a lease's renewal takes is a fault of the store, for all
/// that was sent since would be sent again after a restart (decision 0084).
final class Settler: Sendable {
    /// One settlement, the registry changes that follow from the answer, and what waits for the commit.
    struct Item: Sendable {
        var settlement: Settlement
        var feedback: [Change] = []
        /// The push's first outcome, if a peer may hear of it only when the commit stands (or the store said
        /// that the push was no longer ours).
        var first: OutcomeKind?
        /// The push as it is tried again.
        var again: Return?
        /// The store was told before, and its answer was lost: what it says is not ours now we may have ended
        /// ourselves.
        var mayBeTold = false
    }

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

    /// What hears of commits.
    struct Hearers: Sendable {
        /// Rows may have gone.
        var settled: @Sendable () -> Void
        /// First outcomes that waited for their commit. A push that was another's when it was to be withdrawn
        /// goes on there, so it is pending.
        var known: @Sendable (PushID, FirstOutcome) -> Void
        /// Each push that the store now holds as parked.
        var landed: @Sendable (LaneName, PushClass, UnixTime) -> Void
    }

    /// What lanes may send while outcomes wait for the store.
    enum Leave: Sendable { case everything, urgent, nothing }

    private enum Place { case main, stuck }

    private struct State {
        var main: SettleQueue
        /// What has failed alone.
        var stuck: SettleQueue
        /// Since when something is stuck.
        var stuckSince: ContinuousClock.Instant?
        /// Since when the store has taken nothing, while it was asked to.
        var refusedSince: ContinuousClock.Instant?
        /// How often in a row, each time with other rows where the store may blame the rows.
        var refusals = 0
        var code = StoreError.Code.unavailable
        /// When one push may leave though the store takes no outcomes.
        var trialAt: ContinuousClock.Instant?
        var isClosed = false
        /// How pushes ended that were another's when the store was told; the longest known go first.
        var endings: [PushID: Ending] = [:]
        var endingsInOrder = Fifo<PushID>()

        var count: Int { main.items.count + stuck.items.count }
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

    /// Rows that the store must refuse one behind the other before it is the store that refuses and not they.
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
    /// Those that do not wait because the store refuses them.
    var underWay: Int { state.withLock(\.main.items.count) }

    /// Outcomes that the store has refused for longer than a renewal takes; `nil` while it takes them.
    var unsettled: UnsettledOutcomes? {
        let now = world.instant()
        return state.withLock { state in
            let since = [state.refusedSince, state.stuckSince].compactMap(\.self).min()
            guard let since, now - since >= limits.renewEvery else { return nil }
            return UnsettledOutcomes(code: state.code, count: state.count)
        }
    }

    /// Asked before each push. While the store takes no outcome whatever, calls leave, for nobody wants one
    /// later, and of all else one push in the span of a renewal, to see whether it takes that one's.
    func leave() -> Leave {
        state.withLock { state in
            if isFull(state) { return .nothing }
            // Nearly always nothing is refused, and then nobody asks what time it is.
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
        // By count first: it is seldom so many, and each push asks.
        state.count >= limits.settleBacklog || state.count >= limits.refusedBacklog && state.isRefused
    }

    private func isBlocked(_ state: State, _ now: ContinuousClock.Instant) -> Bool {
        guard let since = state.refusedSince, state.refusals >= Self.witnesses else { return false }
        return now - since >= limits.renewEvery
    }

    func add(_ items: some Collection<Item>) {
        guard !items.isEmpty else { return }
        state.withLock { state in
            guard !state.stuck.items.isEmpty else { return state.main.append(items) }
            // What is said of one push is said in order.
            let stuck = Set(state.stuck.items.map(\.settlement.push.id))
            state.main.append(items.filter { !stuck.contains($0.settlement.push.id) })
            state.stuck.append(items.filter { stuck.contains($0.settlement.push.id) })
        }
        bell.ring()
    }

    /// Of pushes that the store has just given out, those whose end is known here: their answers came while
    /// they were another's, or have not reached the store yet. Nothing of them is to be sent again.
    ///
    /// A withdrawal that has not reached the store yet will not be made, and whoever waits for it hears that
    /// the push is owed. Until then it waits in the store.
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
                ended.append(Item(settlement: Settlement(push, ending.step, first: ending.first)))
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
            // What is stuck is tried once more. Then the rows stay, and the next start owes them.
            group.cancelAll()
        }
    }

    private func settleAll(_ hearers: Hearers) async {
        while true {
            let batch = state.withLock(\.main.batch)
            if batch.isEmpty {
                if state.withLock({ $0.isClosed && $0.main.items.isEmpty }) { return }
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

    /// Settles what the store refuses while it takes others, beside these.
    private func settleStuck(_ hearers: Hearers) async {
        var isLastTry = false
        while true {
            let failures = state.withLock { $0.stuck.items.isEmpty ? nil : $0.stuck.failures }
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
            let batch = state.withLock(\.stuck.batch)
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

    private func settle(_ batch: [Item], _ place: Place, _ hearers: Hearers) async throws(StoreError) {
        var feedback: [Change] = []
        // Most have none, and joining is not free.
        for index in batch.indices where !batch[index].feedback.isEmpty { feedback += batch[index].feedback }
        let ours = try await store.settle(batch.map(\.settlement), feedback: feedback)
        takeOut(batch, ours, place)
        hearers.settled()
        // In their places: an item is large, and most have nobody to tell.
        for (index, isOurs) in zip(batch.indices, ours) {
            let goesOn = !isOurs && batch[index].goesOn
            if let first = batch[index].first {
                hearers.known(batch[index].settlement.push.id, goesOn ? .pending : .known(first))
            }
            if let again = batch[index].again { again.lane?.comeBack(again.entry, isOurs: isOurs) }
            if isOurs, let (lane, due) = batch[index].settlement.parks {
                hearers.landed(lane, batch[index].settlement.push.pushClass, due)
            }
        }
    }

    /// Takes out what the store was told, and keeps the ends that it would not hear, because the pushes were
    /// another's, or it had been told before. In one step: at every moment an end stands in one of both.
    ///
    /// A push that was to be withdrawn has not ended: its sender hears that it is owed.
    private func takeOut(_ batch: [Item], _ ours: [Bool], _ place: Place) {
        state.withLock { state in
            state[place].settled(batch.count)
            (state.refusedSince, state.refusals, state.trialAt) = (nil, 0, nil)
            if state.stuck.items.isEmpty { state.stuckSince = nil }
            for (index, isOurs) in zip(batch.indices, ours)
            where !isOurs && batch[index].settlement.step.isEnd {
                let item = batch[index]
                if item.goesOn { continue }
                let (id, settlement) = (item.settlement.push.id, item.settlement)
                let ending = Ending(step: settlement.step, first: settlement.first)
                guard state.endings.updateValue(ending, forKey: id) == nil else { continue }
                state.endingsInOrder.append(id)
                // A process that was cut off has at most a full backlog of them.
                if state.endings.count > limits.settleBacklog, let oldest = state.endingsInOrder.popFirst() {
                    state.endings[oldest] = nil
                }
            }
        }
    }

    /// The store has refused a batch of the main queue.
    ///
    /// - Returns: how long to wait; `nil`: fewer, or others, are tried at once.
    private func refused(_ batch: [Item], _ error: StoreError) -> Duration? {
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

    private func note(_ error: StoreError, _ batch: [Item]) {
        journal.note("settling failed", [.code: ErrorCode(error), .rows: batch.count], level: .error)
    }

    private func backoff(_ failures: Int) -> Duration {
        Backoff(base: .milliseconds(100), cap: .seconds(5), floorCap: .zero)
            .delay(afterAttempt: failures, asked: nil, random: world.random())
    }
}

/// Outcomes that the store does not take: their pushes would be sent again by whoever owes them next.
package struct UnsettledOutcomes: Sendable, Hashable {
    /// What it said last.
    package var code: StoreError.Code
    package var count: Int
}

extension Settlement.Step {
    /// Nothing more of the push is to be sent.
    fileprivate var isEnd: Bool {
        switch self {
        case .settle, .withdraw: true
        case .retry, .park: false
        }
    }
}

extension Settler.Item {
    /// Whether a push that the store says is not ours is not withdrawn, but goes on where it is.
    fileprivate var goesOn: Bool { settlement.step == .withdraw && !mayBeTold }
}

extension Settlement {
    /// Where and from when the store may hand the push out again, if this step gives it back.
    fileprivate var parks: (lane: LaneName, due: UnixTime)? {
        switch step {
        case .park: (push.lane, push.notBefore)
        case .retry(let notBefore, _, let lane, parked: true): (lane, notBefore)
        case .retry, .settle, .withdraw: nil
        }
    }
}
