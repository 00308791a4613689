import GRDB
package import PushModel

extension SQLiteStore: StoredOwners {
    package func renew(for span: Duration) async throws(StoreError) {
        let until = world.now() + span
        try await queue.submit { try $0.renew(until: until, $1) }
    }

    /// One process at a time opens the file, so it is the only member there is.
    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        let age = world.instant() - openedAt
        return groups.map { group in
            Member(
                owner: owner, group: group, isUs: true, joinedAgo: age, aliveFor: span, hasLeft: false)
        }
    }

    /// Takes those of every lane: nobody else can open the file, and a claim asks for no owner.
    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.takeOver(limit: limit, $1) }
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int { 0 }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.reclaim(limit: limit, $1) }
    }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await queue.submit { writer, _ in
            (writer.memory.rows, writer.memory.bytes, writer.memory.parked.filter { $0.value > 0 })
        }
    }
}

// Rows that change hands.
extension SQLiteWriter {
    static let ofOthers = """
        SELECT seq, lane, parked FROM outbox WHERE seq > ? AND seq < ? AND owner <> ? ORDER BY seq LIMIT ?
        """

    /// Rows that are set aside may contain anything, and affect nobody.
    static let take =
        "UPDATE outbox SET owner = ?, epoch = \(SQLiteSoundness.raisedEpoch), parked = 1 WHERE seq = ?"

    static let inMemory = "SELECT seq, lane FROM outbox WHERE owner = ? AND parked = 0 LIMIT ?"

    /// On SQLite all foreign owners are dead at start, because one process at a time opens the file
    /// (docs/architecture.md).
    func takeOver(limit: Int, _ db: Database) throws -> Int {
        guard let cursor = memory.takeOverCursor else { return 0 }
        var find = try SQL(db, Self.ofOthers)
        find.bind(cursor)
        find.bind(memory.takeOverEnd)
        find.bind(owner)
        find.bind(limit)
        var rows: [(row: Int64, lane: String, wasParked: Bool)] = []
        while try find.step() { rows.append((find.int(0), find.text(1), find.int(2) == 1)) }
        find.finish()
        for (row, lane, wasParked) in rows {
            var sql = try SQL(db, Self.take)
            sql.bind(owner)
            sql.bind(row)
            try sql.run()
            if !wasParked { memory.parked[lane, default: 0] += 1 }
        }
        memory.takeOverCursor = rows.count < limit ? nil : rows.last?.row
        return rows.count
    }

    /// Looks through all rows: answers of a file are hardly ever lost.
    func reclaim(limit: Int, _ db: Database) throws -> Int {
        var find = try SQL(db, Self.inMemory)
        find.bind(owner)
        find.bind(limit)
        var rows: [(row: Int64, lane: String)] = []
        while try find.step() { rows.append((find.int(0), find.text(1))) }
        find.finish()
        for (row, lane) in rows {
            var sql = try SQL(db, Self.take)
            sql.bind(owner)
            sql.bind(row)
            try sql.run()
            unparked.set(row, nil)
            memory.parked[lane, default: 0] += 1
        }
        return rows.count
    }

    func renew(until: UnixTime, _ db: Database) throws {
        var sql = try SQL(db, "INSERT OR REPLACE INTO owners (owner, alive_until) VALUES (?, ?)")
        sql.bind(owner)
        sql.bind(until)
        try sql.run()
    }
}
