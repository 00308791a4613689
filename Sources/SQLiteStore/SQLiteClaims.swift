import GRDB
import PushModel

// What waits in the store: claiming it, taking it over, ending its custody.
extension SQLiteWriter {
    private static let columns = """
        seq, id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch, parked,
        mark, sealed
        """

    /// Parked pushes of a lane that are due: by class, then round robin over origins, oldest first.
    func claim(_ lane: String, due: UnixTime, limit: Int, _ db: Database) throws -> [StoredPush] {
        var claimed: [StoredPush] = []
        for level in PushClass.allCases where claimed.count < limit {
            claimed += try claim(lane, level, due: due, limit: limit - claimed.count, db)
        }
        for push in claimed {
            var sql = try SQL(db, "UPDATE outbox SET parked = 0 WHERE seq = ?")
            sql.bind(push.row)
            try sql.run()
        }
        memory.parked[lane, default: 0] -= claimed.count
        return claimed
    }

    private func claim(
        _ lane: String, _ level: PushClass, due: UnixTime, limit: Int, _ db: Database
    ) throws -> [StoredPush] {
        let origins = try waitingOrigins(lane, level, db)
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
        // The next claim begins behind the last origin that was served in this one.
        memory.turns["\(lane)#\(level.rawValue)"] = origins.last { origin in
            taken.contains { $0.origin == origin }
        }
        return taken
    }

    /// Distinct origins, beginning behind the last claim's, at most as many as one claim takes turns over.
    private func waitingOrigins(_ lane: String, _ level: PushClass, _ db: Database) throws -> [Digest16] {
        let key = "\(lane)#\(level.rawValue)"
        var origins: [Digest16] = []
        let start = memory.turns[key]
        var after = start
        var wrapped = start == nil
        while origins.count < limits.originsPerClaim {
            if let next = try origin(lane, level, after: after, db) {
                if wrapped, let start, next > start { break }
                origins.append(next)
                after = next
            } else if wrapped {
                break
            } else {
                wrapped = true
                after = nil
            }
        }
        return origins
    }

    private func origin(
        _ lane: String, _ level: PushClass, after: Digest16?, _ db: Database
    ) throws -> Digest16? {
        var sql = try SQL(
            db,
            """
            SELECT origin FROM outbox WHERE parked = 1 AND lane = ? AND class = ? AND origin > ?
            ORDER BY origin LIMIT 1
            """)
        sql.bind(lane)
        sql.bind(Int(level.rawValue))
        if let after { sql.bind(after) } else { sql.bind([]) }
        defer { sql.finish() }
        return try sql.step() ? try sql.digest(0) : nil
    }

    private func due(
        _ lane: String, _ level: PushClass, _ origin: Digest16, _ due: UnixTime, after: StoredPush?,
        limit: Int,
        _ db: Database
    ) throws -> [StoredPush] {
        var sql = try SQL(
            db,
            """
            SELECT \(Self.columns) FROM outbox WHERE parked = 1 AND lane = ? AND class = ? AND origin = ?
            AND (not_before, seq) > (?, ?) AND not_before <= ? ORDER BY not_before, seq LIMIT ?
            """)
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
            record: try sql.digest(5), touchedAt: sql.time(6), notBefore: sql.time(7),
            custodyEnds: sql.time(8),
            attempt: Int(sql.int(9)), epoch: sql.int(10), parked: false, mark: try sql.digest(12),
            sealed: sql.bytes(13))
    }

    /// The earliest time at which a parked push of the lane is due.
    func nextDue(_ lane: String, _ db: Database) throws -> UnixTime? {
        var sql = try SQL(db, "SELECT min(not_before) FROM outbox WHERE parked = 1 AND lane = ?")
        sql.bind(lane)
        defer { sql.finish() }
        return try sql.step() && !sql.isNull(0) ? sql.time(0) : nil
    }

    func endCustody(before: UnixTime, limit: Int, _ db: Database) throws -> [String: Int] {
        var find = try SQL(
            db,
            "SELECT seq, lane, length(sealed), mark FROM outbox "
                + "WHERE parked = 1 AND custody_ends <= ? LIMIT ?"
        )
        find.bind(before)
        find.bind(limit)
        var found: [(row: Int64, lane: String, size: Int, mark: Digest16?)] = []
        while try find.step() {
            found.append((find.int(0), find.text(1), Int(find.int(2)), try find.digest(3)))
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
            memory.parked[lane, default: 0] -= 1
            ended[lane, default: 0] += 1
        }
        return ended
    }

    /// On SQLite all foreign owners are dead at start, for one process at a time opens the file (DESIGN §3).
    func takeOver(limit: Int, _ db: Database) throws -> Int {
        guard let cursor = memory.takeOverCursor else { return 0 }
        var find = try SQL(
            db,
            "SELECT seq, lane, parked FROM outbox "
                + "WHERE seq > ? AND seq < ? AND owner <> ? ORDER BY seq LIMIT ?"
        )
        find.bind(cursor)
        find.bind(memory.takeOverEnd)
        find.bind(owner)
        find.bind(limit)
        var rows: [(row: Int64, lane: String, wasParked: Bool)] = []
        while try find.step() { rows.append((find.int(0), find.text(1), find.int(2) == 1)) }
        find.finish()
        for (row, lane, wasParked) in rows {
            var sql = try SQL(db, "UPDATE outbox SET owner = ?, epoch = epoch + 1, parked = 1 WHERE seq = ?")
            sql.bind(owner)
            sql.bind(row)
            try sql.run()
            if !wasParked { memory.parked[lane, default: 0] += 1 }
        }
        memory.takeOverCursor = rows.count < limit ? nil : rows.last?.row
        return rows.count
    }

    func renew(until: UnixTime, _ db: Database) throws {
        var sql = try SQL(db, "INSERT OR REPLACE INTO owners (owner, alive_until) VALUES (?, ?)")
        sql.bind(owner)
        sql.bind(until)
        try sql.run()
    }
}
