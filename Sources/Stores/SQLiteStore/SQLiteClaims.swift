import GRDB
import PushModel

// Parked pushes: claiming them, and ending their custody.
extension SQLiteWriter {
    // Each of these is one walk along an index (or the rows' own order), and so costs the same with six
    // hundred thousand rows parked as with six; a test reads SQLite's plan for them.

    static let nextOrigin = """
        SELECT origin, not_before, seq FROM outbox WHERE parked = 1 AND lane = ? AND class = ? AND origin > ?
        ORDER BY origin, not_before LIMIT 1
        """
    static let dueOfOrigin = """
        SELECT \(SQLiteRows.pushColumns) FROM outbox
        WHERE parked = 1 AND lane = ? AND class = ? AND origin = ? AND (not_before, seq) > (?, ?)
        AND not_before <= ? ORDER BY not_before, seq LIMIT ?
        """
    static let give = "UPDATE outbox SET parked = 0, epoch = epoch + 1, owner = ? WHERE seq = ?"
    /// Reads the whole row, so that a row that cannot be given out is not announced again and again.
    static let earliestOfLane = """
        SELECT \(SQLiteRows.pushColumns) FROM outbox WHERE parked = 1 AND lane = ? ORDER BY not_before LIMIT 1
        """
    static let endedCustody = """
        SELECT seq, lane, length(sealed), mark FROM outbox WHERE parked = 1 AND custody_ends <= ? LIMIT ?
        """

    /// Parked pushes of a lane that are due: by class, then round robin over origins, oldest first.
    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>, _ db: Database
    ) throws -> [StoredPush] {
        var claimed: [StoredPush] = []
        for level in PushClass.allCases where classes.contains(level) && claimed.count < limit {
            claimed += try claim(lane, level, due: due, limit: limit - claimed.count, db)
        }
        for index in claimed.indices {
            // Ours from here on, whoever owned it: a dead owner's row that is given out before it was taken
            // over must be ours to settle, and the take-over must skip it.
            var sql = try SQL(db, Self.give)
            sql.bind(owner)
            sql.bind(claimed[index].row)
            try sql.run()
            claimed[index].epoch += 1
            unparked.set(claimed[index].row, UnparkedRows.Row(record: claimed[index].record))
        }
        memory.parked[lane, default: 0] -= claimed.count
        return claimed
    }

    private func claim(
        _ lane: String, _ level: PushClass, due: UnixTime, limit: Int, _ db: Database
    ) throws -> [StoredPush] {
        let key = "\(lane)#\(level.rawValue)"
        let waiting = try waitingOrigins(lane, level, due, limit: limit, from: memory.turns[key], db)
        let origins = waiting.origins
        // The next claim begins behind the last origin that was looked at or, where not all were served,
        // behind the last that was.
        memory.turns[key] = waiting.last
        guard !origins.isEmpty else { return [] }
        let share = (limit + origins.count - 1) / origins.count
        var queues: [[StoredPush]] = try origins.map {
            try self.due(lane, level, $0, due, after: nil, limit: share, db)
        }
        // Origins with less than their share leave room for those with more; one further round gives it to
        // them.
        var room = limit - queues.reduce(0) { $0 + $1.count }
        for index in queues.indices where room > 0 && queues[index].count == share {
            let more = try self.due(
                lane, level, origins[index], due, after: queues[index].last, limit: room, db)
            queues[index] += more
            room -= more.count
        }
        let taken = interleaved(queues, limit: limit)
        let served = Set(taken.map(\.origin))
        if served.count < origins.count { memory.turns[key] = origins.last { served.contains($0) } }
        return taken
    }

    /// Distinct origins with something due, beginning behind the last claim's: no more than can be served,
    /// and no more looked at than one claim may take time for. An origin is one step in the index, and its
    /// first entry there tells when its earliest push is due.
    ///
    /// - Returns: `last`: the last one looked at, due or not.
    private func waitingOrigins(
        _ lane: String, _ level: PushClass, _ due: UnixTime, limit: Int, from start: Digest16?, _ db: Database
    ) throws -> (origins: [Digest16], last: Digest16?) {
        var origins: [Digest16] = []
        var last = start
        var hasWrapped = start == nil
        let most = min(limit, limits.originsPerClaim)
        for _ in 0..<limits.originsSeenPerClaim where origins.count < most {
            guard let next = try origin(lane, level, after: last, db) else {
                if hasWrapped { break }
                (hasWrapped, last) = (true, nil)
                continue
            }
            if hasWrapped, let start, next.origin > start { break }
            if next.earliest <= due { origins.append(next.origin) }
            last = next.origin
        }
        return (origins, last)
    }

    private func origin(
        _ lane: String, _ level: PushClass, after: Digest16?, _ db: Database
    ) throws -> (origin: Digest16, earliest: UnixTime)? {
        // Ends, because each round sets a row aside or is the last; the rest is left to the next claim.
        for _ in 0..<limits.unreadableAtOnce {
            var sql = try SQL(db, Self.nextOrigin)
            sql.bind(lane)
            sql.bind(Int(level.rawValue))
            if let after { sql.bind(after) } else { sql.bind([]) }
            guard try sql.step() else {
                sql.finish()
                return nil
            }
            let (origin, earliest, row) = (sql.digest(0), sql.moment(1), sql.int(2))
            sql.finish()
            if let origin, let earliest { return (origin, earliest) }
            try putAside(row, db)
        }
        return nil
    }

    private func due(
        _ lane: String, _ level: PushClass, _ origin: Digest16, _ due: UnixTime, after: StoredPush?,
        limit: Int,
        _ db: Database
    ) throws -> [StoredPush] {
        var sql = try SQL(db, Self.dueOfOrigin)
        sql.bind(lane)
        sql.bind(Int(level.rawValue))
        sql.bind(origin)
        sql.bind(after?.notBefore ?? UnixTime(milliseconds: .min))
        sql.bind(after?.row ?? 0)
        sql.bind(due)
        sql.bind(limit)
        var pushes: [StoredPush] = []
        var unreadable: [Int64] = []
        while try sql.step() {
            if var push = SQLiteRows.push(sql) {
                push.parked = false
                pushes.append(push)
            } else {
                unreadable.append(sql.int(0))
            }
        }
        sql.finish()
        for row in unreadable { try putAside(row, db) }
        return pushes
    }

    private func interleaved(_ queues: [[StoredPush]], limit: Int) -> [StoredPush] {
        var result: [StoredPush] = []
        let longest = queues.map(\.count).max() ?? 0
        for turn in 0..<longest {
            for queue in queues where turn < queue.count {
                if result.count == limit { return result }
                result.append(queue[turn])
            }
        }
        return result
    }

    /// The earliest time at which a parked push of the lane is due. Due rows that cannot be read are set
    /// aside, because no claim brings them.
    func nextDue(_ lane: String, _ db: Database) throws -> UnixTime? {
        for _ in 0..<limits.unreadableAtOnce {
            var sql = try SQL(db, Self.earliestOfLane)
            sql.bind(lane)
            guard try sql.step() else {
                sql.finish()
                return nil
            }
            let (push, row) = (SQLiteRows.push(sql), sql.int(0))
            sql.finish()
            if let push { return push.notBefore }
            try putAside(row, db)
        }
        // There may be more: the next claim, and the question behind it, go on.
        return .distantPast
    }

    /// Sets aside a row that cannot be read, without affecting others.
    func putAside(_ row: Int64, _ db: Database) throws {
        var find = try SQL(db, "SELECT lane, parked, mark, length(sealed) FROM outbox WHERE seq = ?")
        find.bind(row)
        guard try find.step() else { return find.finish() }
        let (lane, wasParked, mark) = (find.text(0), find.int(1) == 1, find.digest(2))
        let size = Int(find.int(3))
        find.finish()
        if let mark, case .owed(row)? = marks.place(of: mark, now: marksPurgedAt) {
            moveMark(mark, to: nil, now: marksPurgedAt)
        }
        var sql = try SQL(db, SQLiteSoundness.putAside + " WHERE seq = ? RETURNING lane")
        bindAside(&sql)
        sql.bind(row)
        // As it is written there, which need not be how it was.
        let place = try sql.step() ? sql.text(0) : Aside.text(lane)
        sql.finish()
        if wasParked { memory.parked[lane, default: 0] -= 1 }
        memory.parked[place, default: 0] += 1
        memory.owedByApp.add(lane, rows: -1, bytes: -size)
        memory.owedByApp.add(place, rows: 1, bytes: size)
        unparked.set(row, nil)
        memory.unreadable += 1
    }

    /// What ``SQLiteSoundness/putAside`` needs.
    func bindAside(_ sql: inout SQL) {
        sql.bind(owner)
        sql.bind(latestAside)
        sql.bind(latestAside)
    }

    /// The longest time for which a push stays set aside.
    var latestAside: UnixTime { max(openedAt, marksPurgedAt) + RowBounds.pushAside }

    func endCustody(before: UnixTime, limit: Int, _ db: Database) throws -> [String: Int] {
        var find = try SQL(db, Self.endedCustody)
        find.bind(before)
        find.bind(limit)
        var found: [(row: Int64, lane: String, size: Int, mark: Digest16?)] = []
        while try find.step() {
            found.append(
                (find.int(0), find.text(1), Int(find.int(2)), find.digest(3)))
        }
        find.finish()
        var ended: [String: Int] = [:]
        for (row, lane, size, mark) in found {
            if let mark { moveMark(mark, to: nil, now: before) }
            var sql = try SQL(db, "DELETE FROM outbox WHERE seq = ?")
            sql.bind(row)
            try sql.run()
            memory.rows -= 1
            memory.bytes -= size
            memory.owedByApp.add(lane, rows: -1, bytes: -size)
            memory.parked[lane, default: 0] -= 1
            ended[lane, default: 0] += 1
        }
        return ended
    }
}
