import PushModel

// Claims, owners and sweeps: what a process asks of its own rows, and of those of the dead.
extension PostgresCore {
    /// By class, then round robin over origins, in one transaction.
    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>, _ session: PostgresSession
    ) throws(PostgresFault) -> [StoredPush] {
        let taken = try session.transaction { session throws(PostgresFault) -> [StoredPush] in
            var taken: [StoredPush] = []
            var opening = [Query(PostgresSQL.begin)]
            for pushClass in PushClass.allCases where classes.contains(pushClass) && taken.count < limit {
                taken += try claim(
                    Cursor(lane: lane, pushClass: pushClass), due: due, limit: limit - taken.count, session,
                    &opening)
            }
            // Nothing was begun where nothing was asked for.
            if opening.isEmpty { try session.run([Query(PostgresSQL.commit)], commits: !taken.isEmpty) }
            return taken
        }
        counts.park(lane, by: -taken.count)
        return taken
    }

    private func claim(
        _ place: Cursor, due: UnixTime, limit: Int, _ session: PostgresSession, _ opening: inout [Query]
    ) throws(PostgresFault) -> [StoredPush] {
        var after = cursor(place)
        var taken: [StoredPush] = []
        for _ in 0..<limits.passesPerClaim where taken.count < limit {
            let query = Query(PostgresSQL.claim) { query in
                query.add(owner)
                query.add(place.lane)
                query.add(int16: Int(place.pushClass.rawValue))
                query.add(after)
                query.add(Int64(limits.originsPerClaim))
                query.add(due)
                query.add(Int64(limit - taken.count))
            }
            guard let rows = try session.run(opening + [query], commits: false).last else { break }
            opening = []
            let pass = try read(rows, place)
            taken += pass.pushes
            let sawAll = pass.origins < limits.originsPerClaim
            if taken.count >= limit {
                // Whose turn it is next.
                after = pass.pushes.last?.origin ?? after
            } else if !sawAll {
                after = pass.last ?? after
            } else if pass.pushes.isEmpty {
                break
            }
        }
        setCursor(place, to: after)
        return taken
    }

    private struct Pass {
        var origins = 0
        var last: Digest16?
        var pushes: [StoredPush] = []
    }

    private func read(_ rows: Rows, _ place: Cursor) throws(PostgresFault) -> Pass {
        var pass = Pass()
        var turns: [(turn: Int64, place: Int64, push: StoredPush)] = []
        for row in 0..<rows.count {
            pass.origins = Int(try rows.int(row, 0))
            pass.last = try rows.digestIfAny(row, 1)
            guard !rows.isNull(row, 2) else { continue }
            let id = PushID(try rows.digest(row, 2))
            let push = StoredPush(
                row: Self.row(of: id), id: id, lane: place.lane, pushClass: place.pushClass,
                origin: try rows.digest(row, 3), record: try rows.digestIfAny(row, 4),
                touchedAt: try rows.time(row, 5), notBefore: try rows.time(row, 6),
                custodyEnds: try rows.time(row, 7), attempt: Int(try rows.int(row, 8)),
                epoch: try rows.int(row, 9), parked: false, mark: try rows.digestIfAny(row, 10),
                sealed: rows.bytes(row, 11))
            turns.append((try rows.int(row, 12), try rows.int(row, 13), push))
        }
        pass.pushes = turns.sorted { ($0.turn, $0.place) < ($1.turn, $1.place) }.map(\.push)
        return pass
    }

    func nextDue(_ lane: String, _ session: PostgresSession) throws(PostgresFault) -> UnixTime? {
        let query = Query(PostgresSQL.nextDue) { query in
            query.add(owner)
            query.add(lane)
        }
        let rows = try session.run([query], commits: false)[0]
        return rows.count == 0 ? nil : try rows.time(0, 0)
    }

    func endCustody(
        before: UnixTime, limit: Int, _ session: PostgresSession
    ) throws(PostgresFault) -> [String: Int] {
        let ahead = try deathsAhead(session)
        let query = Query(PostgresSQL.endCustody) { query in
            query.add(owner)
            query.add(before)
            query.add(Int64(limit))
            query.add(ahead)
        }
        let rows = try session.run([query], commits: true)[0]
        var ended: [String: Int] = [:]
        if rows.count > 0 { counts.noteDeletedPushes() }
        for row in 0..<rows.count {
            let (lane, count) = (rows.text(row, 0), Int(try rows.int(row, 1)))
            ended[lane, default: 0] += count
            // What a dead owner said of itself is set right once it owns nothing.
            guard rows.bool(row, 3) else { continue }
            counts.park(lane, by: -count)
            counts.add(lane, rows: -count, bytes: -Int(try rows.int(row, 2)))
        }
        return ended
    }

    // MARK: owners

    func renew(for span: Duration, _ session: PostgresSession) throws(PostgresFault) {
        // The look first: a leap that came since the last one must not be taken for time that has passed.
        _ = try deathsAhead(session, lease: span)
        let own = counts.own
        let query = Query(PostgresSQL.renew) { query in
            query.add(owner)
            query.add(clockAhead)
            query.add(span.wholeMilliseconds)
            query.add(Int64(own.rows))
            query.add(Int64(own.bytes))
        }
        let rows = try session.run([query], commits: true)[0]
        counts.others(rows: Int(try rows.int(0, 0)), bytes: Int(try rows.int(0, 1)))
        counts.others(living: Int(try rows.int(0, 2)))
    }

    func giveUp(_ session: PostgresSession) throws(PostgresFault) {
        let own = counts.own
        let query = Query(PostgresSQL.giveUp) { query in
            query.add(owner)
            query.add(Int64(own.rows))
            query.add(Int64(own.bytes))
        }
        try session.run([query], commits: true)
    }

    /// What stood in a dead process's memory first: it waits the longest.
    func takeOver(
        _ wanted: [String], limit: Int, _ session: PostgresSession
    ) throws(PostgresFault) -> Int {
        let ahead = try deathsAhead(session)
        var moved: [Digest16: (rows: Int64, bytes: Int64)] = [:]
        var lanes: [String: (rows: Int, bytes: Int)] = [:]
        try session.transaction { session throws(PostgresFault) in
            var left = limit
            var opening = [Query(PostgresSQL.begin)]
            for statement in [PostgresSQL.takeOverInMemory, PostgresSQL.takeOverParked] where left > 0 {
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
            let less = Query(PostgresSQL.owedLess) { query in
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
        let query = Query(PostgresSQL.letGo) { query in
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
        let leave = Query(PostgresSQL.leave) { query in
            query.add(owner)
            query.add(clockAhead)
            query.add(texts: names)
            query.add(Member.remembered.wholeMilliseconds)
        }
        let enrol = Query(PostgresSQL.enrol) { query in
            query.add(owner)
            query.add(clockAhead)
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
        try endLost(session)
        let query = Query(PostgresSQL.reclaim) { query in
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
            [Query(PostgresSQL.owedByOthers) { $0.add(owner) }], commits: false)[0]
        counts.others(rows: Int(try others.int(0, 0)), bytes: Int(try others.int(0, 1)))
        return counts.all
    }

    /// Calls that are under way meanwhile are counted on one side or on both; the next doubt sets it right.
    func recount(_ session: PostgresSession) throws(PostgresFault) {
        let rows = try session.run([Query(PostgresSQL.count) { $0.add(owner) }], commits: false)[0]
        var lanes: [String: (rows: Int, bytes: Int, parked: Int)] = [:]
        for row in 0..<rows.count {
            lanes[rows.text(row, 0)] = (
                Int(try rows.int(row, 1)), Int(try rows.int(row, 2)), Int(try rows.int(row, 3))
            )
        }
        counts.set(lanes)
    }

    func setAside(
        _ pushes: [StoredSettlement], _ session: PostgresSession
    ) throws(PostgresFault) -> [Bool] {
        let query = Query(PostgresSQL.setAside) { query in
            query.add(owner)
            query.add(digests: pushes.map(\.id.value))
            query.add(int64s: pushes.map(\.epoch))
            query.add(Aside.prefix)
        }
        let rows = try session.run([query], commits: true)[0]
        var moved: Set<Digest16> = []
        for row in 0..<rows.count {
            moved.insert(try rows.digest(row, 0))
            let lane = rows.text(row, 1)
            if rows.bool(row, 2) { counts.park(lane, by: -1) }
            counts.park(Aside.text(lane), by: 1)
        }
        return pushes.map { moved.contains($0.id.value) }
    }

    // MARK: sweeps

    /// How many marks went; whoever sweeps goes on while it is as many as it may be.
    func dropMarks(_ session: PostgresSession) throws(PostgresFault) -> Int {
        let query = Query(PostgresSQL.dropMarks) { query in
            query.add(clockAhead)
            query.add(int32: limits.markMinutes + 1)
            query.add(Int64(limits.marksPerSweep))
            query.add(int32: Int(firstMarkMinute))
        }
        let rows = try session.run([query], commits: true)[0]
        let dropped = Int(try rows.int(0, 0))
        if dropped < limits.marksPerSweep { noteMarks(dropped: try rows.int(0, 1)) }
        return dropped
    }

    func buryOwners(_ session: PostgresSession) throws(PostgresFault) {
        let ahead = try deathsAhead(session)
        let query = Query(PostgresSQL.buryOwners) { query in
            query.add(owner)
            query.add(ahead)
            query.add(limits.ownerLife.wholeMilliseconds)
        }
        try session.run([query], commits: true)
    }
}
