import GRDB
import PushModel

// What waits in the store: claiming it, and ending its custody.
extension SQLiteWriter {
    // Each of these is one walk along an index (or the rows' own order), and so costs the same with six
    // hundred thousand rows parked as with six; a test reads SQLite's plan for them.

    static let nextOrigin = """
        SELECT origin, not_before FROM outbox WHERE parked = 1 AND lane = ? AND class = ? AND origin > ?
        ORDER BY origin, not_before LIMIT 1
        """
    static let dueOfOrigin = """
        SELECT seq, id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch,
        parked, mark, sealed, address FROM outbox WHERE parked = 1 AND lane = ? AND class = ? AND origin = ?
        AND (not_before, seq) > (?, ?) AND not_before <= ? ORDER BY not_before, seq LIMIT ?
        """
    static let give = "UPDATE outbox SET parked = 0, epoch = epoch + 1, owner = ? WHERE seq = ?"
    /// Walks over a whole lane, behind a fault that nothing but a broken disk makes.
    static let setUnreadableAside = """
        UPDATE outbox SET lane = ? || lane, mark = NULL WHERE parked = 1 AND lane = ? AND class = ?
        AND (length(id) <> 16 OR length(origin) <> 16 OR length(record) <> 16 OR length(mark) <> 16
        OR length(address) <> 16)
        """
    static let earliestOfLane = "SELECT min(not_before) FROM outbox WHERE parked = 1 AND lane = ?"
    static let endedCustody = """
        SELECT seq, lane, length(sealed), mark FROM outbox WHERE parked = 1 AND custody_ends <= ? LIMIT ?
        """

    /// Parked pushes of a lane that are due: by class, then round robin over origins, oldest first.
    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>, _ db: Database
    ) throws -> [StoredPush] {
        var claimed: [StoredPush] = []
        for level in PushClass.allCases where classes.contains(level) && claimed.count < limit {
            claimed += try claimSound(lane, level, due: due, limit: limit - claimed.count, db)
        }
        for index in claimed.indices {
            // Ours from here on, whosever it was: a dead owner's row that is given out before it was taken
            // over must be ours to settle, and the take-over must leave it.
            var sql = try SQL(db, Self.give)
            sql.bind(owner)
            sql.bind(claimed[index].row)
            try sql.run()
            claimed[index].epoch += 1
            unparked.set(claimed[index].row, claimed[index].record)
        }
        memory.parked[lane, default: 0] -= claimed.count
        return claimed
    }

    /// A row whose columns are not what was written goes aside, and takes no other with it.
    private func claimSound(
        _ lane: String, _ level: PushClass, due: UnixTime, limit: Int, _ db: Database
    ) throws -> [StoredPush] {
        do { return try claim(lane, level, due: due, limit: limit, db) } catch {
            guard SQLFault.translate(error).code == .corrupt else { throw error }
            var sql = try SQL(db, Self.setUnreadableAside)
            sql.bind(Aside.prefix)
            sql.bind(lane)
            sql.bind(Int(level.rawValue))
            try sql.run()
            let count = sql.changed
            // Else it is the file that is broken.
            guard count > 0 else { throw error }
            memory.parked[lane, default: 0] -= count
            memory.parked[Aside.text(lane), default: 0] += count
            return try claim(lane, level, due: due, limit: limit, db)
        }
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
        var sql = try SQL(db, Self.nextOrigin)
        sql.bind(lane)
        sql.bind(Int(level.rawValue))
        if let after { sql.bind(after) } else { sql.bind([]) }
        defer { sql.finish() }
        guard try sql.step(), let origin = try sql.digest(0) else { return nil }
        return (origin, sql.time(1))
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
        defer { sql.finish() }
        var pushes: [StoredPush] = []
        while try sql.step() { pushes.append(try Self.push(sql)) }
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

    private static func push(_ sql: SQL) throws -> StoredPush {
        guard let id = try sql.digest(1),
            let level = PushClass(rawValue: UInt8(truncatingIfNeeded: sql.int(3))),
            let origin = try sql.digest(4)
        else { throw StoreError(.corrupt) }
        return StoredPush(
            row: sql.int(0), id: PushID(id), lane: sql.text(2), pushClass: level, origin: origin,
            record: try sql.digest(5), touchedAt: sql.time(6), address: try sql.digest(14),
            notBefore: sql.time(7), custodyEnds: sql.time(8),
            attempt: Int(sql.int(9)), epoch: sql.int(10), parked: false, mark: try sql.digest(12),
            sealed: sql.bytes(13))
    }

    /// The earliest time at which a parked push of the lane is due.
    func nextDue(_ lane: String, _ db: Database) throws -> UnixTime? {
        var sql = try SQL(db, Self.earliestOfLane)
        sql.bind(lane)
        defer { sql.finish() }
        return try sql.step() && !sql.isNull(0) ? sql.time(0) : nil
    }

    func endCustody(before: UnixTime, limit: Int, _ db: Database) throws -> [String: Int] {
        var find = try SQL(db, Self.endedCustody)
        find.bind(before)
        find.bind(limit)
        var found: [(row: Int64, lane: String, size: Int, mark: Digest16?)] = []
        while try find.step() {
            found.append(
                (find.int(0), find.text(1), Int(find.int(2)), find.withBytes(3) { Digest16($0) }))
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
