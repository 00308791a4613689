import PushModel

/// Sweeps: rows that no longer count are removed, a bounded number at a time.
struct PostgresSweeping {
    let owner: Digest16
    let limits: PostgresLimits
    let floors: RowFloors
    let deaths: DeathClock

    /// The number of removed marks; the sweep goes on while it is the most that is allowed.
    func dropMarks(_ session: PostgresSession) throws(PostgresFault) -> Int {
        let query = Query(HousekeepingSQL.dropMarks) { query in
            query.add(limits.aheadMilliseconds)
            query.add(int32: limits.markMinutes + 1)
            query.add(Int64(limits.marksPerSweep))
            query.add(int32: Int(floors.firstMarkMinute))
        }
        let rows = try session.run([query], commits: true)[0]
        let dropped = Int(try rows.int(0, 0))
        if dropped < limits.marksPerSweep { floors.noteMarks(dropped: try rows.int(0, 1)) }
        return dropped
    }

    func buryOwners(_ session: PostgresSession) throws(PostgresFault) {
        let ahead = try deaths.ahead(session)
        let query = Query(HousekeepingSQL.buryOwners) { query in
            query.add(owner)
            query.add(ahead)
            query.add(limits.ownerLife.wholeMilliseconds)
        }
        try session.run([query], commits: true)
    }
}
