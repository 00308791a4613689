import GRDB
package import PushModel

extension SQLiteStore: StoredRecords {
    package func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        try await finds.find(keys, now: now)
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        do {
            return try await pool.read { db in
                try SQLiteRecords.page(index, after: after, limit: limit, now: now, db)
            }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        try await queue.submit { writer, db in
            switch try writer.accept([], changes: changes, now: now, db) {
            case .committed: .committed
            case .refused(let index): .refused(index: index)
            }
        }
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.purge(before: before, limit: limit, $1) }
    }

    package func tally(_ owners: [Digest16]) async throws(StoreError) -> [RecordTally] {
        do {
            return try await pool.read { db in try SQLiteRecords.tally(owners, db) }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        let now = world.now()
        return try await queue.submit(.bulk) { try $0.forget(owner: owner, limit: limit, now: now, $1) }
    }
}

/// Records: reading, and changing under a condition.
enum SQLiteRecords {
    static let columns =
        "key, space, owner, address, version, state, state_at, touched_at, expires_at, revision, body"

    static func find(_ key: Digest16, now: UnixTime, _ db: Database) throws -> StoredRecord? {
        var sql = try SQL(db, "SELECT \(columns) FROM records WHERE \(isKey) AND expires_at > ?")
        sql.bind(slotOf: key)
        sql.bind(now)
        defer { sql.finish() }
        return try sql.step() ? try record(sql) : nil
    }

    /// Chooses one record; three places to bind: ``SQL/bind(slotOf:)``.
    static let isKey = "slot BETWEEN ? AND ? AND key = ?"

    /// Where the record of a key may stand: a number made of its first eight bytes, which orders slots as
    /// keys are, or one of the next few when others have it. Keys are digests, and two of twenty million
    /// share eight bytes in one relay of a hundred thousand; seventeen never do.
    static func slots(of key: Digest16) -> ClosedRange<Int64> {
        let first = min(Int64(bitPattern: key.high ^ 1 << 63), .max - 15)
        return first...first + 15
    }

    /// Inserts a record at the first free slot of its key's.
    ///
    /// - Parameter replaces: the record of that key goes, if there is one; without it that one stays.
    static func insert(
        _ record: StoredRecord, revision: Int64, replaces: Bool = false, _ db: Database
    ) throws {
        guard let (slot, isTaken) = try place(of: record.key, db) else { throw StoreError(.full) }
        if isTaken && !replaces { return }
        var sql = try SQL(
            db, "INSERT OR REPLACE INTO records (slot, \(columns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
        sql.bind(slot)
        bind(record, revision: revision, to: &sql)
        try sql.run()
    }

    /// Where the record of a key stands, or the first free one of its slots; `nil` when others have them all.
    private static func place(of key: Digest16, _ db: Database) throws -> (slot: Int64, isTaken: Bool)? {
        let slots = slots(of: key)
        var sql = try SQL(db, "SELECT slot, key FROM records WHERE slot BETWEEN ? AND ? ORDER BY slot")
        sql.bind(slots.lowerBound)
        sql.bind(slots.upperBound)
        defer { sql.finish() }
        var free: Int64? = slots.lowerBound
        var gap: Int64?
        while try sql.step() {
            let slot = sql.int(0)
            if try sql.digest(1) == key { return (slot, true) }
            if let next = free, slot != next { gap = gap ?? next }
            free = slot < slots.upperBound ? slot + 1 : nil
        }
        return (gap ?? free).map { ($0, false) }
    }

    static func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime, _ db: Database
    ) throws -> [StoredRecord] {
        let column =
            switch index {
            case .space: "space"
            case .owner: "owner"
            case .address: "address"
            }
        var sql = try SQL(
            db,
            """
            SELECT \(columns) FROM records WHERE \(column) = ? AND revision > ? AND expires_at > ?
            ORDER BY revision LIMIT ?
            """)
        switch index {
        case .space(let space): sql.bind(space)
        case .owner(let digest), .address(let digest): sql.bind(digest)
        }
        sql.bind(Int64(clamping: after))
        sql.bind(now)
        sql.bind(limit)
        defer { sql.finish() }
        var records: [StoredRecord] = []
        while try sql.step() { records.append(try record(sql)) }
        return records
    }

    /// Of each owner in turn, by the index of owners; the length of a body is read without the body.
    static func tally(_ owners: [Digest16], _ db: Database) throws -> [RecordTally] {
        try owners.map { owner in
            var sql = try SQL(
                db, "SELECT count(*), COALESCE(sum(length(body)), 0) FROM records WHERE owner = ?")
            sql.bind(owner)
            defer { sql.finish() }
            guard try sql.step() else { return .none }
            return RecordTally(records: Int(sql.int(0)), bytes: Int(sql.int(1)))
        }
    }

    /// The columns of one row, as ``columns`` has them.
    static func record(_ sql: SQL) throws -> StoredRecord {
        guard let key = try sql.digest(0) else { throw StoreError(.corrupt) }
        let state: PushModel.Record.State =
            switch sql.int(5) {
            case 0: .live
            case 1: .expired(at: sql.time(6))
            case 2: .tombstone
            default: throw StoreError(.corrupt)
            }
        return StoredRecord(
            key: key, space: sql.text(1), owner: try sql.digest(2), address: try sql.digest(3),
            version: sql.withBytes(4) { $0.reduce(0) { $0 << 8 | UInt64($1) } }, state: state,
            touchedAt: sql.time(7), expiresAt: sql.time(8), revision: UInt64(sql.int(9)), body: sql.bytes(10))
    }

    /// Binds ``columns`` in their order.
    static func bind(_ record: StoredRecord, revision: Int64, to sql: inout SQL) {
        let (state, at) = number(record.state)
        sql.bind(record.key)
        sql.bind(record.space)
        sql.bind(record.owner)
        sql.bind(record.address)
        // Eight big-endian bytes, for SQLite's integers are signed and versions are not.
        withUnsafeBytes(of: record.version.bigEndian) { sql.bind($0) }
        sql.bind(state)
        sql.bind(at)
        sql.bind(record.touchedAt)
        sql.bind(record.expiresAt)
        sql.bind(revision)
        sql.bind(record.body)
    }

    static func number(_ state: PushModel.Record.State) -> (Int, UnixTime) {
        switch state {
        case .live: (0, .distantPast)
        case .expired(let at): (1, at)
        case .tombstone: (2, .distantPast)
        }
    }
}

extension SQLiteWriter {
    /// Whether a change meets its condition.
    func mayChange(_ change: StoredChange, now: UnixTime, _ db: Database) throws -> Bool {
        let (key, condition): (Digest16, Condition)
        switch change {
        case .put(let record, let given): (key, condition) = (record.key, given)
        case .expire(let given, _, let test): (key, condition) = (given, test)
        case .delete(let given, let test): (key, condition) = (given, test)
        case .deleteBeside: return true
        }
        guard condition != .any else { return true }
        if case .besideLive = condition, case .put(let new, _) = change, let beside = new.address,
            try SQLiteRecords.find(beside, now: now, db)?.state != .live
        {
            return false
        }
        let current = try SQLiteRecords.find(key, now: now, db)
        return condition.isMet(
            by: current.map { ClearColumns($0) })
    }

    /// Makes a change whose condition is met.
    ///
    /// - Returns: the registration of which something may have ended with it.
    func make(_ change: StoredChange, _ db: Database) throws -> Digest16? {
        switch change {
        case .put(let record, _):
            try put(record, db)
            // What was learned of an address is no registration, nor is what has none.
            let isRegistration = record.address != nil && record.space != Space.learned.text
            return isRegistration || record.state != .live ? record.key : nil
        case .expire(let key, let at, _):
            // What has expired is only known to be so: its content is forgotten.
            var sql = try SQL(
                db,
                """
                UPDATE records SET state = 1, state_at = ?, expires_at = min(expires_at, ?), revision = ?,
                body = x''
                WHERE \(SQLiteRecords.isKey) AND state = 0
                """)
            sql.bind(at)
            sql.bind(at + PushModel.Record.expiredLife)
            sql.bind(try nextRevision(db))
            sql.bind(slotOf: key)
            try sql.run()
            return key
        case .delete(let key, _):
            var sql = try SQL(db, "DELETE FROM records WHERE \(SQLiteRecords.isKey)")
            sql.bind(slotOf: key)
            try sql.run()
            return key
        case .deleteBeside(let keys):
            for key in keys {
                var sql = try SQL(db, "DELETE FROM records WHERE address = ?")
                sql.bind(key)
                try sql.run()
            }
            return nil
        }
    }

    private func put(_ record: StoredRecord, _ db: Database) throws {
        try SQLiteRecords.insert(record, revision: try nextRevision(db), replaces: true, db)
    }

    /// The newest record may be deleted, and its revision must never be given again: a stretch of them is
    /// reserved in the file before the first is used.
    private func nextRevision(_ db: Database) throws -> Int64 {
        if memory.revision >= memory.revisionsReserved {
            memory.revisionsReserved = memory.revision + limits.revisionsReserved
            var sql = try SQL(db, "INSERT OR REPLACE INTO settings (name, value) VALUES ('revisions', ?)")
            sql.bind(String(memory.revisionsReserved))
            try sql.run()
        }
        memory.revision += 1
        return memory.revision
    }

    func purge(before: UnixTime, limit: Int, _ db: Database) throws -> Int {
        var find = try SQL(db, "SELECT key FROM records WHERE expires_at < ? LIMIT ?")
        find.bind(before)
        find.bind(limit)
        var retired = try SQL(db, "SELECT key FROM records WHERE space = ? LIMIT ?")
        retired.bind(Space.retired.text)
        retired.bind(limit)
        return try remove(find, db).count + remove(retired, db).count
    }

    func forget(owner: Digest16, limit: Int, now: UnixTime, _ db: Database) throws -> Int {
        var find = try SQL(db, "SELECT key FROM records WHERE owner = ? LIMIT ?")
        find.bind(owner)
        find.bind(limit)
        let gone = try remove(find, db)
        try endOwed(gone, now: now, db)
        return gone.count
    }

    /// Removes the records whose keys are found.
    private func remove(_ find: SQL, _ db: Database) throws -> [Digest16] {
        var keys: [Digest16] = []
        while try find.step() { if let key = try find.digest(0) { keys.append(key) } }
        find.finish()
        for key in keys { _ = try make(.delete(key, if: .any), db) }
        return keys
    }
}
