import GRDB
package import PushModel

extension SQLiteStore: StoredRecords {
    package func find(
        _ keys: [Digest16], often: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord?] {
        try await finds.find(keys, often: often, now: now)
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        do {
            let (page, unreadable) = try await pool.read { [limits] db in
                try SQLiteRecords.page(
                    index, after: after, limit: limit, atOnce: limits.unreadableAtOnce, now: now, db)
            }
            queue.setAside(unreadable)
            return page
        } catch {
            throw SQLFault.translate(error)
        }
    }

    package func setRecordsAside(_ records: [SeenRecord]) async throws(StoreError) -> Int {
        guard records.isEmpty else {
            return try await queue.submit(.bulk) { writer, db in
                for record in records { try writer.setAside(record, db) }
                return try SQLiteRecords.countAside(db)
            }
        }
        do { return try await pool.read(SQLiteRecords.countAside) } catch { throw SQLFault.translate(error) }
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
        let now = world.now()
        return try await queue.submit(.bulk) { try $0.purge(before: before, limit: limit, now: now, $1) }
    }

    package func tally(_ owners: [Digest16], weighing: Bool) async throws(StoreError) -> [RecordTally] {
        do {
            return try await pool.read { db in try SQLiteRecords.tally(owners, weighing: weighing, db) }
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

    /// A record's row, looked at.
    enum Row {
        case record(StoredRecord)
        /// It does not hold what was written.
        case unreadable(slot: Int64)
        /// It stands aside, because it did not.
        case aside
    }

    private static let asidePrefix = Array(Aside.prefix.utf8)

    /// ``columns`` and the slot.
    static let rowColumns = columns + ", slot"

    /// Put together once: every push asks.
    private static let findText = "SELECT \(rowColumns) FROM records WHERE \(isKey)"

    /// The query for one record by its key, made ready once for all that are asked for together.
    struct Lookup {
        private var sql: SQL
        /// Rows that are asked for together are mostly of few spaces.
        private var space: String?

        init(_ db: Database) throws { sql = try SQL(db, findText) }

        /// - Parameter unreadable: the slot of a row that cannot be read is added to it.
        mutating func find(
            _ key: Digest16, now: UnixTime, _ unreadable: inout [Int64]
        ) throws -> StoredRecord? {
            sql.bindAnew(slotOf: key)
            defer { sql.finish() }
            guard try sql.step() else { return nil }
            switch row(sql, after: space) {
            case .record(let record):
                space = record.space
                return record.expiresAt > now ? record : nil
            case .aside: return nil
            case .unreadable(let slot):
                unreadable.append(slot)
                return nil
            }
        }
    }

    /// One record, where a row that cannot be read is about to be written over, or is met again.
    static func find(_ key: Digest16, now: UnixTime, _ db: Database) throws -> StoredRecord? {
        var unreadable: [Int64] = []
        var lookup = try Lookup(db)
        return try lookup.find(key, now: now, &unreadable)
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
    /// - Returns: whether a record of that key stood there that named another address, or none.
    @discardableResult
    static func insert(
        _ record: StoredRecord, revision: Int64, replaces: Bool = false, _ db: Database
    ) throws -> Bool {
        guard let (slot, stood) = try place(of: record.key, db) else { throw StoreError(.full) }
        if stood != nil && !replaces { return false }
        var sql = try SQL(
            db, "INSERT OR REPLACE INTO records (slot, \(columns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
        sql.bind(slot)
        bind(record, revision: revision, to: &sql)
        try sql.run()
        return stood.map { $0.address == nil || $0.address != record.address } ?? false
    }

    /// Inserts a row of ``columns`` that cannot be read, aside, in a slot of its own key if it has one.
    static func insertAside(_ row: SQL, _ db: Database) throws {
        let key = row.digest(0) ?? Digest16(high: 0, low: 0)
        guard let (slot, stood) = try place(of: key, db), stood == nil else { return }
        var sql = try SQL(
            db,
            """
            INSERT INTO records (slot, \(columns))
            VALUES (?, ?, ?, NULL, NULL, x'', 2, 0, 0, (strftime('%s', 'now') + ?) * 1000, 0, ?)
            """)
        sql.bind(slot)
        sql.bind(row.bytes(0))
        sql.bind(Aside.text(row.name(1) ?? ""))
        sql.bind(RowBounds.recordAside.components.seconds)
        sql.bind(row.bytes(10))
        try sql.run()
    }

    /// What stands in a slot; the address is `nil` too when it cannot be read.
    private struct Standing {
        let address: Digest16?
    }

    /// Where the record of a key stands, or the first free one of its slots; `nil` when others have them all.
    private static func place(of key: Digest16, _ db: Database) throws -> (slot: Int64, stood: Standing?)? {
        let slots = slots(of: key)
        var sql = try SQL(
            db, "SELECT slot, key, address FROM records WHERE slot BETWEEN ? AND ? ORDER BY slot")
        sql.bind(slots.lowerBound)
        sql.bind(slots.upperBound)
        defer { sql.finish() }
        var free: Int64? = slots.lowerBound
        var gap: Int64?
        while try sql.step() {
            let slot = sql.int(0)
            if sql.digest(1) == key { return (slot, Standing(address: sql.digest(2))) }
            if let next = free, slot != next { gap = gap ?? next }
            free = slot < slots.upperBound ? slot + 1 : nil
        }
        return (gap ?? free).map { ($0, nil) }
    }

    /// Rows that cannot be read are passed over, and do not count for the limit: a short page is the last.
    ///
    /// - Parameter atOnce: how many of those are told, by their slots.
    static func page(
        _ index: StoredIndex, after: UInt64, limit: Int, atOnce: Int, now: UnixTime, _ db: Database
    ) throws -> (page: [StoredRecord], unreadable: [Int64]) {
        var sql = try SQL(db, pageText(index))
        switch index {
        case .space(let space): sql.bind(space)
        case .owner(let digest), .address(let digest), .expired(let digest, _): sql.bind(digest)
        }
        if case .expired(_, let time) = index {
            sql.bind(version: after)
            sql.bind(time)
        } else {
            sql.bind(Int64(clamping: after))
        }
        sql.bind(now)
        defer { sql.finish() }
        var records: [StoredRecord] = []
        var unreadable: [Int64] = []
        while records.count < limit, try sql.step() {
            switch row(sql) {
            case .record(let record): records.append(record)
            case .aside: break
            case .unreadable(let slot): if unreadable.count < atOnce { unreadable.append(slot) }
            }
        }
        return (records, unreadable)
    }

    /// Of what stands in the index of expired records. A version is eight bytes.
    static let isListed = "state = 1 AND owner IS NOT NULL AND version > x'0000000000000000'"

    /// To bind: space, owner or address; after; of the expired their moment; now.
    private static func pageText(_ index: StoredIndex) -> String {
        let column: String
        switch index {
        case .space: column = "space"
        case .owner: column = "owner"
        case .address: column = "address"
        case .expired:
            return """
                SELECT \(rowColumns) FROM records INDEXED BY expired_by_owner
                WHERE owner = ? AND version > ? AND \(isListed) AND state_at <= ? AND expires_at > ?
                ORDER BY version
                """
        }
        return """
            SELECT \(rowColumns) FROM records WHERE \(column) = ? AND revision > ? AND expires_at > ?
            ORDER BY revision
            """
    }

    /// The sign behind a colon is a semicolon: one stretch of the index of spaces.
    static let aside = "SELECT count(*) FROM records WHERE space >= 'aside:' AND space < 'aside;'"

    static func countAside(_ db: Database) throws -> Int {
        let sql = try SQL(db, aside)
        defer { sql.finish() }
        return try sql.step() ? Int(sql.int(0)) : 0
    }

    /// Of each owner in turn, by the index of owners, which alone answers where bytes are not asked for; the
    /// length of a body is read without the body, but with the page that it stands in.
    static func tally(_ owners: [Digest16], weighing: Bool, _ db: Database) throws -> [RecordTally] {
        let text = tally(weighing: weighing)
        return try owners.map { owner in
            var sql = try SQL(db, text)
            sql.bind(owner)
            defer { sql.finish() }
            guard try sql.step() else { return .none }
            return RecordTally(records: Int(sql.int(0)), bytes: Int(sql.int(1)))
        }
    }

    static func tally(weighing: Bool) -> String {
        let bytes = weighing ? "COALESCE(sum(length(body)), 0)" : "0"
        return "SELECT count(*), \(bytes) FROM records WHERE owner = ?"
    }

    /// One row of ``rowColumns``.
    ///
    /// - Parameter space: of the row before.
    static func row(_ sql: SQL, after space: String? = nil) -> Row {
        // By its bytes, whatever else the text holds.
        if sql.begins(1, with: asidePrefix) { return .aside }
        return record(sql, after: space).map { .record($0) } ?? .unreadable(slot: sql.int(11))
    }

    /// The columns of one row, as ``columns`` has them; `nil` unless each holds what is written there.
    static func record(_ sql: SQL, after last: String? = nil) -> StoredRecord? {
        guard let key = sql.digest(0), let space = sql.name(1, after: last), let owner = sql.digestIfAny(2),
            let address = sql.digestIfAny(3), let version = sql.number(4),
            let stateAt = sql.moment(6), let touchedAt = sql.moment(7), let expiresAt = sql.moment(8),
            let revision = sql.integer(9, in: RowBounds.counts), let body = sql.blob(10)
        else { return nil }
        let state: PushModel.Record.State
        switch sql.integer(5, in: 0...2) {
        case 0: state = .live
        case 1: state = .expired(at: stateAt)
        case 2: state = .tombstone
        default: return nil
        }
        return StoredRecord(
            key: key, space: space, owner: owner, address: address, version: version, state: state,
            touchedAt: touchedAt, expiresAt: expiresAt, revision: UInt64(revision), body: body)
    }

    /// Binds ``columns`` in their order.
    static func bind(_ record: StoredRecord, revision: Int64, to sql: inout SQL) {
        let (state, at) = number(record.state)
        sql.bind(record.key)
        sql.bind(record.space)
        sql.bind(record.owner)
        sql.bind(record.address)
        sql.bind(version: record.version)
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
