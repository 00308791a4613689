import PushModel

/// Owners: which are alive, who owns each push, and what this process owes.
struct PostgresOwners {
    let owner: Digest16
    let limits: PostgresLimits
    let counts: OwedCounts
    let deaths: DeathClock
    let lost: LostBackends
    let world: World
    let endings: PostgresEndings

    func renew(for span: Duration, _ session: PostgresSession) throws(PostgresFault) {
        let began = world.instant()
        // The look at the clock first: a jump since the last look must not be taken for time that has passed.
        _ = try deaths.ahead(session, lease: span)
        let own = counts.own
        let query = Query(OwnerSQL.renew) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(span.wholeMilliseconds)
            query.add(Int64(own.rows))
            query.add(Int64(own.bytes))
        }
        let results = try session.run([query] + endings.hearing(), commits: true)
        try endings.hear(results[1])
        let rows = results[0]
        counts.others(rows: Int(try rows.int(0, 0)), bytes: Int(try rows.int(0, 1)))
        counts.others(living: Int(try rows.int(0, 2)))
        counts.renewed(
            from: began, for: span, at: world.instant(), lived: !rows.isNull(0, 3) && rows.bool(0, 3))
    }

    func giveUp(_ session: PostgresSession) throws(PostgresFault) {
        let own = counts.own
        let query = Query(OwnerSQL.giveUp) { query in
            query.add(owner)
            query.add(Int64(own.rows))
            query.add(Int64(own.bytes))
        }
        try session.run([query], commits: true)
    }

    /// Pushes that were in a dead process's memory first: they have waited longest.
    func takeOver(
        _ wanted: [String], limit: Int, _ session: PostgresSession
    ) throws(PostgresFault) -> Int {
        try endings.lookAgain(session)
        let ahead = try deaths.ahead(session)
        var moved: [Digest16: (rows: Int64, bytes: Int64)] = [:]
        var lanes: [String: (rows: Int, bytes: Int)] = [:]
        try session.transaction { session throws(PostgresFault) in
            var left = limit
            var opening = [Query(PostgresSQL.begin)]
            for statement in [OwnerSQL.takeOverInMemory, OwnerSQL.takeOverParked] where left > 0 {
                let query = Query(statement) { query in
                    query.add(owner)
                    query.add(ahead)
                    query.add(Int64(left))
                    query.add(texts: wanted)
                }
                guard let rows = try session.run(opening + [query], commits: false).last else { break }
                opening = []
                left -= rows.count
                for row in 0..<rows.count {
                    let owed = lanes[rows.text(row, 0)] ?? (0, 0)
                    lanes[rows.text(row, 0)] = (owed.rows + 1, owed.bytes + Int(try rows.int(row, 1)))
                    let from = moved[try rows.digest(row, 2)] ?? (0, 0)
                    moved[try rows.digest(row, 2)] = (from.rows + 1, from.bytes + (try rows.int(row, 1)))
                }
            }
            let owners = moved.keys.sorted()
            let less = Query(OwnerSQL.owedLess) { query in
                query.add(digests: owners)
                query.add(int64s: owners.map { moved[$0]?.rows ?? 0 })
                query.add(int64s: owners.map { moved[$0]?.bytes ?? 0 })
            }
            try session.run(
                (owners.isEmpty ? [] : [less]) + [Query(PostgresSQL.commit)], commits: !owners.isEmpty)
        }
        for (lane, owed) in lanes {
            counts.add(lane, rows: owed.rows, bytes: owed.bytes)
            counts.park(lane, by: owed.rows)
        }
        return lanes.values.reduce(0) { $0 + $1.rows }
    }

    func letGo(
        besides lanes: [String], limit: Int, _ session: PostgresSession
    ) throws(PostgresFault) -> Int {
        let query = Query(OwnerSQL.letGo) { query in
            query.add(owner)
            query.add(texts: lanes)
            query.add(Int64(limit))
            query.add(OwnerID.nobody.value)
        }
        let rows = try session.run([query], commits: true)[0]
        for row in 0..<rows.count {
            counts.park(rows.text(row, 0), by: -1)
            counts.add(rows.text(row, 0), rows: -1, bytes: -Int(try rows.int(row, 1)))
        }
        return rows.count
    }

    func enrol(
        in groups: [GroupName], for span: Duration, _ session: PostgresSession
    ) throws(PostgresFault) -> [Member] {
        let names = groups.map(\.text)
        let leave = Query(OwnerSQL.leave) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(texts: names)
            query.add(Member.remembered.wholeMilliseconds)
        }
        let enrol = Query(OwnerSQL.enrol) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(texts: names)
            query.add(span.wholeMilliseconds)
        }
        let rows = try session.run([leave, enrol], commits: true)[1]
        var members: [Member] = []
        for row in 0..<rows.count {
            let id = OwnerID(try rows.digest(row, 0))
            members.append(
                Member(
                    owner: id, group: GroupName(unchecked: rows.text(row, 1)), isUs: id.value == owner,
                    joinedAgo: .milliseconds(try rows.int(row, 2)),
                    aliveFor: .milliseconds(try rows.int(row, 3)), hasLeft: rows.bool(row, 4)))
        }
        return members
    }

    /// Parks what stands as in memory; first nothing may be under way any more that could add to it.
    func reclaim(limit: Int, _ session: PostgresSession) throws(PostgresFault) -> Int {
        try lost.end(session)
        let query = Query(OwnerSQL.reclaim) { query in
            query.add(owner)
            query.add(Int64(limit))
        }
        let rows = try session.run([query], commits: true)[0]
        for row in 0..<rows.count { counts.park(rows.text(row, 0), by: 1) }
        return rows.count
    }

    func load(
        _ session: PostgresSession
    ) throws(PostgresFault) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        if counts.takeDoubt() {
            do { try recount(session) } catch {
                counts.doubt()
                throw error
            }
        }
        let others = try session.run(
            [Query(OwnerSQL.owedByOthers) { $0.add(owner) }], commits: false)[0]
        counts.others(rows: Int(try others.int(0, 0)), bytes: Int(try others.int(0, 1)))
        return counts.all
    }

    /// Calls that are under way meanwhile are counted once or twice; the next count corrects it.
    func recount(_ session: PostgresSession) throws(PostgresFault) {
        let rows = try session.run([Query(OwnerSQL.count) { $0.add(owner) }], commits: false)[0]
        var lanes: [String: (rows: Int, bytes: Int, parked: Int)] = [:]
        for row in 0..<rows.count {
            lanes[rows.text(row, 0)] = (
                Int(try rows.int(row, 1)), Int(try rows.int(row, 2)), Int(try rows.int(row, 3))
            )
        }
        counts.set(lanes)
    }

    /// Owners that are alive, without this one.
    func living(_ session: PostgresSession) throws(PostgresFault) -> [OwnerID] {
        let ahead = try deaths.ahead(session)
        let query = Query(OwnerSQL.livingOwners) { query in
            query.add(owner)
            query.add(ahead)
        }
        let rows = try session.run([query], commits: false)[0]
        var owners: [OwnerID] = []
        for row in 0..<rows.count { owners.append(OwnerID(try rows.digest(row, 0))) }
        return owners
    }
}
