import PushModel
import Synchronization

/// What this process owes, counted as it goes, and what the others said that they owe.
///
/// Counting rows would read all of them; so each process counts its own, writes the sum with every renewal,
/// and adds the others' sums of that time. An answer that was lost, or a row that another process took, makes
/// the count doubtful, and then it is made anew.
final class OwedCounts: Sendable {
    private struct State {
        var rows = 0
        var bytes = 0
        var parked: [String: Int] = [:]
        var othersRows = 0
        var othersBytes = 0
        var isDoubtful = false
        var deletions = Deletions()
    }

    private let state = Mutex(State())
    private let limits: PostgresLimits

    init(limits: PostgresLimits) { self.limits = limits }

    /// Makes room for pushes that are to be written; false when there is none.
    func reserve(rows: Int, bytes: Int) -> Bool {
        state.withLock { state in
            guard state.rows + state.othersRows + rows <= limits.outboxRows,
                state.bytes + state.othersBytes + bytes <= limits.outboxBytes
            else { return false }
            state.rows += rows
            state.bytes += bytes
            return true
        }
    }

    /// Gives back room that was reserved, or what rows held that have gone.
    func release(rows: Int, bytes: Int) { add(rows: -rows, bytes: -bytes) }

    func add(rows: Int, bytes: Int) {
        state.withLock { state in
            state.rows = max(0, state.rows + rows)
            state.bytes = max(0, state.bytes + bytes)
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

    /// Whether to count anew; asked once for each doubt.
    func takeDoubt() -> Bool {
        state.withLock { state in
            defer { state.isDoubtful = false }
            return state.isDoubtful
        }
    }

    func set(rows: Int, bytes: Int, parked: [String: Int]) {
        state.withLock { state in
            (state.rows, state.bytes, state.parked) = (rows, bytes, parked)
        }
    }

    func others(rows: Int, bytes: Int) {
        state.withLock { ($0.othersRows, $0.othersBytes) = (rows, bytes) }
    }

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
