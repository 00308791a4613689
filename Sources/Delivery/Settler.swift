import PushModel
import Synchronization

/// Joins settlements into commits.
///
/// Answers come one by one and thousands a second; a commit for each would cost more than the sending. The
/// backlog is bounded by ``isCongested``: lanes stop sending until the store has caught up, which they see at
/// the next tick.
final class Settler: Sendable {
    /// One settlement, the registry changes that follow from the answer, and what waits for the commit.
    struct Item: Sendable {
        var settlement: Settlement
        var feedback: [Change] = []
        /// The push's first outcome, if a peer may hear of it only when the commit stands (or the store said
        /// that the push was no longer ours).
        var first: OutcomeKind?
    }

    private struct State {
        var items: [Item] = []
        var isClosed = false
        /// How pushes ended that were another's when the store was told; the longest known go first.
        var endings: [PushID: Ending] = [:]
        var endingsInOrder = Fifo<PushID>()
    }

    private struct Ending {
        let step: Settlement.Step
        let first: OutcomeKind?
    }

    private let state = Mutex(State())
    private let bell = Bell()
    private let store: any Settling
    private let limits: DeliveryLimits
    private let world: World
    private let journal: Journal

    init(store: any Settling, limits: DeliveryLimits, world: World, journal: Journal) {
        self.store = store
        self.limits = limits
        self.world = world
        self.journal = journal
    }

    var isCongested: Bool { state.withLock { $0.items.count >= limits.settleBacklog } }
    var backlog: Int { state.withLock { $0.items.count } }

    func add(_ items: [Item]) {
        guard !items.isEmpty else { return }
        state.withLock { $0.items += items }
        bell.ring()
    }

    /// Of pushes that the store has just given out, those whose end is known here: their answers came while
    /// they were another's, or have not reached the store yet. Nothing of them is to be sent again.
    ///
    /// - Returns: the others, and what settles these in the name that they have now.
    func recall(_ pushes: [OwedPush]) -> (unknown: [OwedPush], ended: [Item]) {
        guard !pushes.isEmpty else { return ([], []) }
        let ids = Set(pushes.map(\.id))
        let known = state.withLock { state in
            var known: [PushID: Ending] = [:]
            for item in state.items where item.settlement.step.isEnd {
                let id = item.settlement.push.id
                guard ids.contains(id) else { continue }
                known[id] = Ending(step: item.settlement.step, first: item.settlement.first)
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

    /// Takes out what the store was told, and keeps the ends that it would not hear, because the pushes were
    /// another's, or it had been told before. In one step: at every moment an end stands in one of both.
    private func takeOut(_ batch: [Item], _ ours: [Bool]) {
        state.withLock { state in
            state.items.removeFirst(batch.count)
            for (item, isOurs) in zip(batch, ours) where !isOurs && item.settlement.step.isEnd {
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

    /// Ends `run` once everything is settled.
    func close() {
        state.withLock { $0.isClosed = true }
        bell.ring()
    }

    /// Settles until closed, in a cancelled task too: answers are owed to their pushes.
    ///
    /// - Parameter settled: told of each commit: rows may have gone.
    /// - Parameter known: told of first outcomes that waited for their commit. A push that was another's when
    ///   it was to be withdrawn goes on there, so it is pending.
    /// - Parameter landed: told of each push that the store now holds as parked.
    func run(
        settled: () -> Void, known: (PushID, FirstOutcome) -> Void,
        landed: (LaneName, PushClass, UnixTime) -> Void
    ) async {
        var failures = 0
        // An answer was lost: what is not ours now we may have settled ourselves.
        var isUncertain = false
        while true {
            let batch = state.withLock { Array($0.items.prefix(limits.settleBatch)) }
            if batch.isEmpty {
                if state.withLock({ $0.isClosed && $0.items.isEmpty }) { return }
                await bell.waitThroughCancellation()
                continue
            }
            do {
                let ours = try await store.settle(
                    batch.map(\.settlement), feedback: batch.flatMap(\.feedback))
                failures = 0
                takeOut(batch, ours)
                settled()
                for (item, isOurs) in zip(batch, ours) {
                    let goesOn = !isOurs && !isUncertain && item.settlement.step == .withdraw
                    if let first = item.first {
                        known(item.settlement.push.id, goesOn ? .pending : .known(first))
                    }
                    if isOurs, let (lane, due) = item.settlement.parks {
                        landed(lane, item.settlement.push.pushClass, due)
                    }
                }
                isUncertain = false
            } catch {
                failures += 1
                isUncertain = isUncertain || error.code == .uncertain
                journal.note("settling failed", [.code: ErrorCode(error), .rows: batch.count], level: .error)
                let backoff = Backoff(base: .milliseconds(100), cap: .seconds(5), floorCap: .zero)
                let wait = backoff.delay(afterAttempt: failures, asked: nil, random: world.random())
                // Cancelled or closed in the middle of an outage: the rows stay, and the next start owes
                // them.
                if state.withLock(\.isClosed), failures > 3 { return }
                do { try await world.sleep(world.instant() + wait) } catch { return }
            }
        }
    }
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
