import PushModel

/// Forgetting (decision 0035): deleted content must not be left in the database's files, even for somebody
/// who has the key file.
///
/// A deleted row stays in its page until a vacuum, and its bytes stay in the page's gap after that, and in
/// the log as long as its segment is kept. So small tables are rewritten, which empties their old files at
/// once; then the log is switched and a checkpoint is made, after which the server removes older segments
/// (with `wal_recycle = off`, which only an operator can set: else they are renamed and keep their bytes).
package enum PostgresForgotten: Sendable, Hashable {
    /// As far as our rights allow, tables and log contain nothing that was deleted before.
    case all
    /// The tables were rewritten; the log is removed with the server's own checkpoints, because the role may
    /// not switch it (`pg_switch_wal`) or make one (`pg_checkpoint`).
    case tables
    /// A table is too large to be rewritten while a relay runs.
    case tooLarge
    /// A table was in use for longer than forgetting waits.
    case busy
}

/// One round of forgetting.
struct PostgresForgetting {
    let limits: PostgresLimits

    /// - Parameter records: whether records were deleted too; otherwise their table is left as it is.
    func forget(records: Bool, _ session: PostgresSession) throws(PostgresFault) -> PostgresForgotten {
        var found = PostgresForgotten.all
        var tables = [(rewrite: HousekeepingSQL.rewriteOutbox, size: Int32(0))]
        if records { tables.append((HousekeepingSQL.rewriteRecords, 1)) }
        do {
            var sizes = try session.run([Query(HousekeepingSQL.tableSizes)], commits: false)[0]
            if try sizes.int(0, 0) <= limits.vacuumBytes {
                // Frees the empty end of the file, without blocking anybody: a table that was long only
                // because of deleted rows is then short enough.
                try session.run([Query(HousekeepingSQL.vacuumOutbox)], commits: false)
                sizes = try session.run([Query(HousekeepingSQL.tableSizes)], commits: false)[0]
            }
            try wait(limits.forgetPatience, session)
            for table in tables {
                guard try sizes.int(0, table.size) <= limits.rewriteBytes else {
                    found = .tooLarge
                    continue
                }
                try session.run([Query(table.rewrite)], commits: false)
            }
        } catch .refused(let state) where state.text == "55P03" || state.text == "57014" {
            found = .busy
        }
        try wait(limits.lockTimeout, session)
        guard found == .all else { return found }
        do {
            try session.run([Query(HousekeepingSQL.switchLog)], commits: false)
            try session.run([Query(HousekeepingSQL.checkpoint)], commits: false)
        } catch .refused(let state) where state.text == "42501" {
            return .tables
        }
        return found
    }

    /// How long this session waits for locks.
    private func wait(_ span: Duration, _ session: PostgresSession) throws(PostgresFault) {
        try session.run(
            [
                Query(PostgresSQL.configure) { query in
                    query.add(texts: ["lock_timeout"])
                    query.add(texts: [String(span.wholeMilliseconds)])
                }
            ], commits: false)
    }
}

/// When to forget: once it is quiet, and under unbroken load after a while; asked at each sweep.
struct ForgettingSchedule {
    enum Scope { case pushes, everything }

    private var seen: OwedCounts.Deletions?
    private var forgotten: OwedCounts.Deletions?
    private var last: ContinuousClock.Instant
    private var pause: Duration

    init(now: ContinuousClock.Instant, limits: PostgresLimits) {
        last = now
        pause = limits.sweepEvery
    }

    /// Whether it is time, and for records too. A process that was killed may have left something; so the
    /// first round is due whatever happened since.
    mutating func due(
        _ deletions: OwedCounts.Deletions, now: ContinuousClock.Instant, limits: PostgresLimits
    ) -> Scope? {
        let isQuiet = deletions == seen
        seen = deletions
        guard deletions != forgotten, now - last >= (isQuiet ? pause : limits.forgetEvery) else { return nil }
        return deletions.records != forgotten?.records ? .everything : .pushes
    }

    /// The larger the tables, the rarer the rounds: tables are blocked for a hundredth of the time at most.
    /// If somebody keeps a table in use, rounds become rarer and rarer.
    mutating func tried(
        _ found: PostgresForgotten?, deletions: OwedCounts.Deletions, began: ContinuousClock.Instant,
        now: ContinuousClock.Instant, limits: PostgresLimits
    ) {
        last = now
        switch found {
        case .all, .tables: (forgotten, pause) = (deletions, max(limits.forgetRest, (now - began) * 100))
        case .tooLarge, .busy, nil: pause = min(pause * 2, limits.forgetEvery)
        }
    }
}
