import PushModel
import Synchronization

/// Takes back rows that the store may have given us when its answer was lost.
///
/// If the answer to an accept or a claim is lost, the store says that the push is in our memory, and it is
/// not: it would not be sent until this process dies. We cannot tell which rows these are, so for a moment
/// the lanes hold nothing, and then all our rows that the store counts as in memory are parked.
final class Reclaim: Sendable {
    private struct State {
        var isDue = false
        var isUnderWay = false
        /// Calls whose rows the store will count as in memory, and that are on their way there.
        var holders = 0
    }

    private let state = Mutex(State())
    private let bell = Bell()

    /// Whether rows that the store gives out now may go into memory; if so, ``end()`` must follow once they
    /// are there.
    func begin() -> Bool {
        state.withLock { state in
            guard !state.isUnderWay else { return false }
            state.holders += 1
            return true
        }
    }

    func end() { state.withLock { $0.holders -= 1 } }

    /// Asks for it after a lost answer; other faults leave nothing behind.
    func note(_ error: StoreError) {
        guard error.code == .uncertain else { return }
        state.withLock { $0.isDue = true }
        bell.ring()
    }

    /// Waits until it is due, and begins it; false when cancelled.
    fileprivate func due() async -> Bool {
        while !Task.isCancelled {
            let begins = state.withLock { state in
                guard state.isDue else { return false }
                state.isDue = false
                state.isUnderWay = true
                return true
            }
            if begins { return true }
            await bell.wait()
        }
        return false
    }

    fileprivate var holders: Int { state.withLock(\.holders) }
    fileprivate func finish() { state.withLock { $0.isUnderWay = false } }
}

extension DeliveryCore {
    /// Reclaims whenever it is due, until cancelled. A process that ends in the midst of it leaves rows of a
    /// dead owner, which the next one takes over.
    func reclaimLoop() async {
        while await reclaim.due() {
            journal.note("store answer lost", level: .warning)
            handBack(true)
            guard await isEmptied() else { return }
            guard let count = await parkAll() else { return }
            handBack(false)
            reclaim.finish()
            journal.note("took back owed pushes", [.count: count])
        }
    }

    /// Waits until no durable push is in memory, under way, or about to be; each request has its deadline,
    /// and a store that is out ends the lease. An outcome that the store refuses is not waited for: the
    /// settler knows it when its push comes again. False when cancelled.
    private func isEmptied() async -> Bool {
        // By then every request has met its deadline: what still waits, waits for the store.
        var sayAt: ContinuousClock.Instant? = world.instant() + limits.requestDeadline * 2
        // In this order: what leaves the first is found in the next.
        while reclaim.holders > 0 || ticking.contains(where: \.isSending) || settler.underWay > 0 {
            if let moment = sayAt, moment <= world.instant() {
                sayAt = nil
                journal.note("owed pushes wait to be taken back", [.rows: settler.underWay], level: .error)
            }
            do { try await world.sleep(world.instant() + limits.tick) } catch { return false }
        }
        return true
    }

    /// Asks the store what it owes, and sets these lanes' counts right by it.
    func recount(
        _ lanes: [any LaneHandle], haveGained: Bool
    ) async throws(StoreError) -> OutboxLoad {
        let noted = lanes.map(\.noted)
        let load = try await ownership.load()
        for (lane, before) in zip(lanes, noted) {
            lane.correct(
                parked: load.lanes[lane.name] ?? 0, hasGained: haveGained, notedBefore: before)
        }
        return load
    }

    private func parkAll() async -> Int? {
        var count = 0
        var failures = 0
        while true {
            do throws(StoreError) {
                let parked = try await ownership.reclaim(limit: limits.sweepRows)
                count += parked
                guard parked < limits.sweepRows else { continue }
                _ = try await recount(ticking, haveGained: count > 0)
                return count
            } catch {
                failures += 1
                let backoff = Backoff(base: limits.backoffBase, cap: .seconds(5), floorCap: .zero)
                let wait = backoff.delay(afterAttempt: failures, asked: nil, random: world.random())
                do { try await world.sleep(world.instant() + wait) } catch { return nil }
            }
        }
    }
}
