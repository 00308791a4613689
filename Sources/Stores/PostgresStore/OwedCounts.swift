import PushModel
import Synchronization

/// What this process owes, counted continuously, and what the others have reported that they owe.
///
/// Counting rows would read all of them. So each process counts its own, writes the sum with every renewal,
/// and adds the others' sums of that time. A lost answer, a row that another process took, or a lease that
/// had ended makes the count doubtful; then the rows are counted again.
final class OwedCounts: Sendable {
    private struct State {
        var rows = 0
        var bytes = 0
        var parked: [String: Int] = [:]
        var owedByApp = OwedByApp()
        var othersRows = 0
        var othersBytes = 0
        /// Other processes that live.
        var others = 0
        var isDoubtful = false
        /// By our own clock.
        var leaseEnds: ContinuousClock.Instant?
        var deletions = Deletions()
    }

    private let state = Mutex(State())
    private let limits: PostgresLimits

    init(limits: PostgresLimits) { self.limits = limits }

    /// Makes room for pushes that are to be written; false when there is none.
    func reserve(_ pushes: [StoredPush]) -> Bool {
        let (rows, bytes) = (pushes.count, pushes.reduce(0) { $0 + $1.sealed.count })
        return state.withLock { state in
            let share = limits.share
            guard
                state.owedByApp.hasRoom(
                    for: pushes, rows: share.of(limits.outboxRows, among: state.others + 1),
                    bytes: share.of(limits.outboxBytes, among: state.others + 1))
            else { return false }
            guard state.rows + state.othersRows + rows <= limits.outboxRows,
                state.bytes + state.othersBytes + bytes <= limits.outboxBytes
            else { return false }
            state.rows += rows
            state.bytes += bytes
            for push in pushes { state.owedByApp.add(push.lane, rows: 1, bytes: push.sealed.count) }
            return true
        }
    }

    /// Gives back room that was reserved.
    func release(_ pushes: [StoredPush]) {
        for push in pushes { add(push.lane, rows: -1, bytes: -push.sealed.count) }
    }

    /// Counts rows of a lane in, or out with negative numbers.
    func add(_ lane: String, rows: Int, bytes: Int) {
        state.withLock { state in
            state.rows = max(0, state.rows + rows)
            state.bytes = max(0, state.bytes + bytes)
            state.owedByApp.add(lane, rows: rows, bytes: bytes)
        }
    }

    func park(_ lane: String, by count: Int) {
        state.withLock { $0.parked[lane] = max(0, ($0.parked[lane] ?? 0) + count) }
    }

    /// Commits of this process that may have deleted sealed content.
    struct Deletions: Sendable, Hashable {
        var pushes = 0
        var records = 0
    }

    var deletions: Deletions { state.withLock(\.deletions) }
    func noteDeletedPushes() { state.withLock { $0.deletions.pushes += 1 } }
    func noteDeletedRecords() { state.withLock { $0.deletions.records += 1 } }

    func doubt() { state.withLock { $0.isDoubtful = true } }

    /// A renewal was answered. Between the end of the former lease and now, others may have taken rows of
    /// ours without telling us: a process that slept would count them for ever.
    ///
    /// - Parameter lived: whether that lease still held, by the clock by which others judge it.
    func renewed(
        from began: ContinuousClock.Instant, for span: Duration, at now: ContinuousClock.Instant, lived: Bool
    ) {
        state.withLock { state in
            if !lived || state.leaseEnds.map({ $0 < now }) ?? false { state.isDoubtful = true }
            state.leaseEnds = began + span
        }
    }

    /// Whether to count anew; asked once for each doubt.
    func takeDoubt() -> Bool {
        state.withLock { state in
            defer { state.isDoubtful = false }
            return state.isDoubtful
        }
    }

    /// What was counted anew, by lane.
    func set(_ lanes: [String: (rows: Int, bytes: Int, parked: Int)]) {
        state.withLock { state in
            state.rows = lanes.values.reduce(0) { $0 + $1.rows }
            state.bytes = lanes.values.reduce(0) { $0 + $1.bytes }
            state.parked = lanes.mapValues(\.parked)
            state.owedByApp = OwedByApp()
            for (lane, owed) in lanes { state.owedByApp.add(lane, rows: owed.rows, bytes: owed.bytes) }
        }
    }

    func others(rows: Int, bytes: Int) {
        state.withLock { ($0.othersRows, $0.othersBytes) = (rows, bytes) }
    }

    func others(living: Int) { state.withLock { $0.others = living } }

    /// This process's own.
    var own: (rows: Int, bytes: Int) { state.withLock { ($0.rows, $0.bytes) } }

    /// Rows and bytes of all processes; parked pushes of this one, which alone can claim them.
    var all: (rows: Int, bytes: Int, lanes: [String: Int]) {
        state.withLock { state in
            (
                state.rows + state.othersRows, state.bytes + state.othersBytes,
                state.parked.filter { $0.value > 0 }
            )
        }
    }
}
