import GRDB
import PushModel

// Records as the writer changes them: under conditions, by what deletes them, and setting them aside.
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
    /// - Returns: the registration that it has changed.
    func make(_ change: StoredChange, _ db: Database) throws -> ChangedRegistration? {
        switch change {
        case .put(let record, _): frequent.forget(record.key)
        case .expire(let key, _, _), .delete(let key, _): frequent.forget(key)
        // Of what is kept none names one.
        case .deleteBeside: break
        }
        switch change {
        case .put(let record, _):
            let hadAnother = try put(record, db)
            guard record.state == .live else { return ChangedRegistration(key: record.key) }
            // What stands beside a registration is none itself, nor are records without an address.
            guard let address = record.address, !Space.standsBeside(record.space) else { return nil }
            // Nothing is owed to a new registration, and nothing ends if the address stays the same.
            return ChangedRegistration(key: record.key, address: address, mayOwe: hadAnother)
        case .expire(let key, let at, _):
            // A record that cannot be read, or is set aside, counts as absent.
            let always = UnixTime(milliseconds: .min)
            guard try SQLiteRecords.find(key, now: always, db) != nil else {
                return ChangedRegistration(key: key)
            }
            // An expired record keeps only the fact that it has expired: its content is forgotten.
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
            return ChangedRegistration(key: key)
        case .delete(let key, _):
            var sql = try SQL(db, "DELETE FROM records WHERE \(SQLiteRecords.isKey)")
            sql.bind(slotOf: key)
            try sql.run()
            return ChangedRegistration(key: key)
        case .deleteBeside(let keys):
            for key in keys {
                var sql = try SQL(db, "DELETE FROM records WHERE address = ?")
                sql.bind(key)
                try sql.run()
            }
            return nil
        }
    }

    private func put(_ record: StoredRecord, _ db: Database) throws -> Bool {
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

    func purge(before: UnixTime, limit: Int, now: UnixTime, _ db: Database) throws -> Int {
        var find = try SQL(db, "SELECT slot, key, address FROM records WHERE expires_at < ? LIMIT ?")
        find.bind(before)
        find.bind(limit)
        let gone = try remove(find, db)
        for case (let key, let address?) in gone.rows { recentChanges.noteLapsed(key, address, at: now) }
        return gone.count
    }

    func forget(owner: Digest16, limit: Int, now: UnixTime, _ db: Database) throws -> Int {
        var find = try SQL(db, "SELECT slot, key, address FROM records WHERE owner = ? LIMIT ?")
        find.bind(owner)
        find.bind(limit)
        let gone = try remove(find, db)
        try endOwed(gone.rows.map { ChangedRegistration(key: $0.key) }, now: now, db)
        return gone.count
    }

    /// Removes the records whose slots are found, whatever else stands there.
    ///
    /// - Returns: their number, and what those that can be read were.
    private func remove(
        _ find: SQL, _ db: Database
    ) throws -> (count: Int, rows: [(key: Digest16, address: Digest16?)]) {
        frequent.forgetAll()
        var slots: [Int64] = []
        var rows: [(key: Digest16, address: Digest16?)] = []
        while try find.step() {
            slots.append(find.int(0))
            if let key = find.digest(1) { rows.append((key, find.digest(2))) }
        }
        find.finish()
        for slot in slots {
            var sql = try SQL(db, "DELETE FROM records WHERE slot = ?")
            sql.bind(slot)
            try sql.run()
        }
        return (slots.count, rows)
    }

    // MARK: aside

    /// A record that does not open, unless it was written anew since.
    func setAside(_ record: SeenRecord, _ db: Database) throws {
        var sql = try SQL(
            db, "SELECT slot, space FROM records WHERE \(SQLiteRecords.isKey) AND revision = ?")
        sql.bind(slotOf: record.key)
        sql.bind(record.revision)
        let slot = try sql.step() && !Aside.holds(sql.text(1)) ? sql.int(0) : nil
        sql.finish()
        if let slot { try setAside(slot: slot, db) }
    }

    /// Sets aside records that still cannot be read; how many.
    func setAside(slots: Set<Int64>, _ db: Database) throws -> Int {
        var count = 0
        for slot in slots.sorted() {
            var sql = try SQL(db, "SELECT \(SQLiteRecords.rowColumns) FROM records WHERE slot = ?")
            sql.bind(slot)
            var isUnreadable = false
            if try sql.step(), case .unreadable = SQLiteRecords.row(sql) { isUnreadable = true }
            sql.finish()
            guard isUnreadable else { continue }
            try setAside(slot: slot, db)
            count += 1
        }
        return count
    }

    private func setAside(slot: Int64, _ db: Database) throws {
        frequent.forgetAll()
        var sql = try SQL(
            db,
            """
            UPDATE records SET space = '\(Aside.prefix)' || CASE WHEN typeof(space) = 'text' \
            THEN substr(space, 1, \(RowBounds.textBytes / 4)) ELSE '' END,
            expires_at = \(SQLiteSoundness.earlier("expires_at")) WHERE slot = ?
            """)
        let latest = max(openedAt, marksPurgedAt) + RowBounds.recordAside
        sql.bind(latest)
        sql.bind(latest)
        sql.bind(slot)
        try sql.run()
    }
}
