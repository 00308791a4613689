import PushModel
import Synchronization

/// Pushes that end with registrations: found by registration, whoever owes them, and reported to processes
/// that may hold them in memory.
final class PostgresEndings: Sendable {
    private struct State {
        /// Our pushes that others' commits have ended, as far as we know.
        var heard: Set<Digest16> = []
        /// Registrations that ended lately. A process may just have been writing a push for one of them, so
        /// their pushes are looked for once more.
        var lately: Set<Digest16> = []
        var earlier: Set<Digest16> = []
    }

    let told = EndedPushes()
    private let owner: Digest16
    private let limits: PostgresLimits
    private let counts: OwedCounts
    private let state = Mutex(State())

    /// How long an owner is told: three of its leases.
    private static let tells = Duration.seconds(60)
    /// Registrations that are looked for once more: some megabytes at most.
    private static let mostLately = 50_000
    private static let parked = Digest16(high: 0, low: 0)

    init(owner: Digest16, limits: PostgresLimits, counts: OwedCounts) {
        self.owner = owner
        self.limits = limits
        self.counts = counts
    }

    /// Behind changes of records, in their transaction; `nil` where nothing can end with them.
    func ending(_ runs: [ChangeCall.Run]) -> Query? {
        let keys = Self.registrations(runs)
        return keys.isEmpty ? nil : ending(keys)
    }

    private func ending(_ keys: some Collection<Digest16>) -> Query {
        Query(OutboxSQL.endOwed) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(digests: keys)
        }
    }

    private static func registrations(_ runs: [ChangeCall.Run]) -> Set<Digest16> {
        var keys: Set<Digest16> = []
        for case .keyed(let changes) in runs {
            for (_, change) in changes {
                switch change {
                case .put(let record, _):
                    // What stands beside a registration is none itself, nor are records without an address.
                    let isRegistration = record.address != nil && !Space.standsBeside(record.space)
                    if isRegistration || record.state != .live { keys.insert(record.key) }
                case .expire(let key, _, _), .delete(let key, _): keys.insert(key)
                case .deleteBeside: break
                }
            }
        }
        return keys
    }

    /// Records what a commit has ended.
    func note(_ rows: Rows, _ runs: [ChangeCall.Run]) throws(PostgresFault) {
        try note(rows)
        let keys = Self.registrations(runs)
        state.withLock { state in
            if state.lately.count + keys.count <= Self.mostLately { state.lately.formUnion(keys) }
        }
    }

    private func note(_ rows: Rows) throws(PostgresFault) {
        guard rows.count > 0 else { return }
        counts.noteDeletedPushes()
        var ids: [PushID] = []
        for row in 0..<rows.count where rows.bool(row, 2) {
            let lane = rows.text(row, 1)
            counts.add(lane, rows: -1, bytes: -Int(try rows.int(row, 4)))
            if rows.bool(row, 3) {
                counts.park(lane, by: -1)
            } else {
                ids.append(PushID(try rows.digest(row, 0)))
            }
        }
        told.tell(ids)
    }

    // MARK: what others end

    /// With each renewal: what others' commits have ended of ours.
    func hearing() -> [Query] {
        [
            Query(OutboxSQL.endedLately) { $0.add(owner) },
            Query(OutboxSQL.dropEnded) { query in
                query.add(limits.aheadMilliseconds)
                query.add(Self.tells.wholeMilliseconds)
            }
        ]
    }

    func hear(_ rows: Rows) throws(PostgresFault) {
        var ids: Set<Digest16> = []
        for row in 0..<rows.count { ids.insert(try rows.digest(row, 0)) }
        let new = state.withLock { state in
            defer { state.heard = ids }
            return ids.subtracting(state.heard)
        }
        guard !new.isEmpty else { return }
        // They are gone, and our counts still include them.
        counts.doubt()
        told.tell(new.filter { $0 != Self.parked }.map { PushID($0) })
    }

    /// Pushes that were being written while their registrations ended: no statement takes as long as the time
    /// between two of these looks.
    func lookAgain(_ session: PostgresSession) throws(PostgresFault) {
        let keys = state.withLock { state in
            defer { (state.earlier, state.lately) = (state.lately, []) }
            return state.earlier
        }
        guard !keys.isEmpty else { return }
        try note(try session.run([ending(keys)], commits: true)[0])
    }
}
