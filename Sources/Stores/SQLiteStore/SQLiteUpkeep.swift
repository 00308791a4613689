import GRDB
package import PushModel

// Reading all rows, and filling, for those who move a store or change its keys.
extension SQLiteStore: StoredRows {
    package func records(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredRecord> {
        try await read { try SQLiteRows.records(SQL($0, SQLiteRows.records), after: place, limit: limit) }
    }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredOwed> {
        try await read { try SQLiteRows.pushes(SQL($0, SQLiteRows.pushes), after: place, limit: limit) }
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredMark> {
        try await read { try SQLiteRows.marks(SQL($0, SQLiteRows.marks), after: place, limit: limit) }
    }

    package func settings(_ prefix: String) async throws(StoreError) -> [String: [UInt8]] {
        try await read { try SQLiteRows.settings(SQL($0, SQLiteRows.settings), prefix) }
    }

    package func lastRevision() async throws(StoreError) -> UInt64 {
        try await maintain { writer, _ in
            UInt64(max(writer.memory.revision, writer.memory.revisionsReserved))
        }
    }

    private func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        do { return try await pool.read(body) } catch { throw SQLFault.translate(error) }
    }
}

extension SQLiteStore: StoreSettings {
    /// One process at a time opens the file.
    package func livingOwners() async throws(StoreError) -> [OwnerID] { [] }

    package func put(setting name: String, to value: [UInt8]?) async throws(StoreError) {
        try await maintain { try SQLiteRows.put(setting: name, to: value, $1) }
    }
}

extension SQLiteStore: StoreFilling {
    package func fill(_ page: StoredPage, noting name: String, _ value: [UInt8]) async throws(StoreError) {
        let now = world.now()
        try await maintain { writer, db in
            try writer.fill(page, now: now, db)
            try SQLiteRows.put(setting: name, to: value, db)
        }
    }

    /// Nobody else writes: only one process can open the file, and a start looks whether it was copied.
    package func bar(_ isBarred: Bool) async throws(StoreError) {}
}

extension SQLiteStore: StoreResealing {
    package func reseal(_ rows: [Resealed]) async throws(StoreError) -> Int {
        try await maintain { _, db in try rows.reduce(0) { try $0 + SQLiteRows.reseal($1, db) } }
    }
}

/// All rows of each table, in the order of its key.
enum SQLiteRows {
    /// By slot, so by key but where eight bytes are shared.
    static let records =
        "SELECT \(SQLiteRecords.rowColumns) FROM records WHERE slot >= ? ORDER BY slot LIMIT ?"
    /// The same of a file that no relay of this version has opened, whose records have no slots yet.
    static let recordsByKey =
        "SELECT \(SQLiteRecords.columns), 0 FROM records WHERE key > ? ORDER BY key LIMIT ?"
    private static let pushColumnsOfOld = """
        seq, id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch, parked,
        mark, sealed, first
        """
    static let pushColumns = pushColumnsOfOld + ", address"
    static let pushes = "SELECT \(pushColumns) FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?"
    /// The same of a file that no relay of this version has opened.
    static let pushesBeforeAddresses =
        "SELECT \(pushColumnsOfOld), NULL FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?"
    static let marks = "SELECT seq, made_at, entries FROM marks WHERE seq > ? ORDER BY seq LIMIT ?"
    /// More than there are seal keys and relays.
    static let settings = "SELECT name, value FROM settings WHERE name <> 'revisions' LIMIT 10000"

    static func records(
        _ sql: SQL, after place: StoredPlace, limit: Int
    ) throws -> RowPage<StoredRecord> {
        var sql = sql
        // Slots are in the order of keys, whose first eight bytes they are made of.
        sql.bind(place.isEmpty ? .min : row(place) ^ .min)
        sql.bind(limit)
        return try records(sql) { sql in
            let slot = sql.int(11)
            return slot == .max ? nil : Self.place((slot + 1) ^ .min)
        }
    }

    /// - Parameter place: where the next page begins, behind a row; `nil` where none can follow.
    static func records(_ sql: SQL, _ place: (SQL) -> StoredPlace?) throws -> RowPage<StoredRecord> {
        defer { sql.finish() }
        var page = RowPage<StoredRecord>()
        while try sql.step() {
            page.next = place(sql)
            switch SQLiteRecords.row(sql) {
            case .record(let record): page.rows.append(record)
            case .unreadable(let slot): page.unreadable.append("slot \(slot)")
            case .aside: page.unreadable.append("slot \(sql.int(11)), set aside")
            }
        }
        return page
    }

    /// A row's number, in eight bytes.
    private static func place(_ row: Int64) -> StoredPlace {
        withUnsafeBytes(of: row.bigEndian) { Array($0) }
    }

    private static func row(_ place: StoredPlace) -> Int64 {
        place.prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    /// One row of ``pushColumns``; `nil` unless each holds what is written there.
    static func push(_ sql: SQL) -> StoredPush? {
        guard let row = sql.integer(0, in: RowBounds.counts), row > 0, let id = sql.digest(1),
            let lane = sql.name(2),
            let level = sql.integer(3, in: 0...255).flatMap({ PushClass(rawValue: UInt8($0)) }),
            let origin = sql.digest(4), let record = sql.digestIfAny(5), let touchedAt = sql.moment(6),
            let notBefore = sql.moment(7), let custodyEnds = sql.moment(8),
            let attempt = sql.integer(9, in: RowBounds.attempts),
            let epoch = sql.integer(10, in: RowBounds.counts), let parked = sql.integer(11, in: 0...1),
            let mark = sql.digestIfAny(12), let sealed = sql.blob(13), let address = sql.digestIfAny(15)
        else { return nil }
        return StoredPush(
            row: row, id: PushID(id), lane: lane, pushClass: level, origin: origin, record: record,
            touchedAt: touchedAt, address: address, notBefore: notBefore, custodyEnds: custodyEnds,
            attempt: Int(attempt),
            epoch: epoch, parked: parked == 1, mark: mark, sealed: sealed)
    }

    static func pushes(
        _ sql: SQL, after place: StoredPlace, limit: Int
    ) throws -> RowPage<StoredOwed> {
        var sql = sql
        sql.bind(place.isEmpty ? .min : row(place))
        sql.bind(limit)
        defer { sql.finish() }
        var page = RowPage<StoredOwed>()
        while try sql.step() {
            page.next = Self.place(sql.int(0))
            if let push = push(sql) {
                page.rows.append(StoredOwed(push: push, first: sql.outcome(14)))
            } else {
                page.unreadable.append("row \(sql.int(0))")
            }
        }
        return page
    }

    static func marks(
        _ sql: SQL, after place: StoredPlace, limit: Int
    ) throws -> RowPage<StoredMark> {
        var sql = sql
        sql.bind(place.isEmpty ? .min : row(place))
        // Each row is one batch of at most a thousand.
        sql.bind(max(1, limit / 1_000))
        defer { sql.finish() }
        var page = RowPage<StoredMark>()
        while try sql.step() {
            page.next = Self.place(sql.int(0))
            guard let madeAt = sql.moment(1), let blob = sql.blob(2) else {
                page.unreadable.append("row \(sql.int(0))")
                continue
            }
            blob.withUnsafeBytes { bytes in
                for entry in 0..<min(bytes.count / MarkBlob.entryBytes, MarkBlob.mostEntries) {
                    guard let name = MarkBlob.mark(entry, of: bytes),
                        let (id, first) = MarkBlob.read(entry, of: bytes)
                    else { continue }
                    page.rows.append(StoredMark(mark: name, id: id, first: first, endedAt: madeAt))
                }
            }
        }
        return page
    }

    static func settings(_ sql: SQL, _ prefix: String) throws -> [String: [UInt8]] {
        defer { sql.finish() }
        var settings: [String: [UInt8]] = [:]
        while try sql.step() {
            guard let name = sql.name(0), name.hasPrefix(prefix), let value = sql.blob(1) else { continue }
            settings[name] = value
        }
        return settings
    }

    /// 1 when the row still stands as it was read.
    static func reseal(_ row: Resealed, _ db: Database) throws -> Int {
        switch row {
        case .record(let key, let revision, let body):
            var sql = try SQL(
                db, "UPDATE records SET body = ? WHERE \(SQLiteRecords.isKey) AND revision = ?")
            sql.bind(body)
            sql.bind(slotOf: key)
            sql.bind(Int64(clamping: revision))
            try sql.run()
            return sql.changed
        case .push(let row, let id, let sealed):
            var sql = try SQL(db, "UPDATE outbox SET sealed = ? WHERE seq = ? AND id = ?")
            sql.bind(sealed)
            sql.bind(row)
            sql.bind(id.value)
            try sql.run()
            return sql.changed
        }
    }
}

extension SQLiteWriter {
    /// Inserts rows of another store, and counts them as if they had been accepted here.
    func fill(_ page: StoredPage, now: UnixTime, _ db: Database) throws {
        switch page {
        case .records(let records): for record in records { try fill(record, db) }
        case .pushes(let pushes):
            for owed in pushes {
                var push = owed.push
                push.parked = true
                _ = try insert(push, first: owed.first, now: now, db)
            }
        case .marks(let marks): try fill(marks, now: now, db)
        case .lastRevision(let revision):
            let given = Int64(clamping: revision)
            // One that cannot be ours would leave none to give.
            guard RowBounds.counted.contains(given) else { return }
            memory.revision = max(memory.revision, given)
            memory.revisionsReserved = max(memory.revisionsReserved, memory.revision)
            var sql = try SQL(db, "INSERT OR REPLACE INTO settings (name, value) VALUES ('revisions', ?)")
            sql.bind(String(memory.revisionsReserved))
            try sql.run()
        }
    }

    private func fill(_ record: StoredRecord, _ db: Database) throws {
        let revision = Int64(clamping: record.revision)
        try SQLiteRecords.insert(record, revision: revision, db)
        if RowBounds.counted.contains(revision) { memory.revision = max(memory.revision, revision) }
    }

    /// Marks of one moment share a row, as those of one batch do.
    private func fill(_ marks: [StoredMark], now: UnixTime, _ db: Database) throws {
        var rest = marks[...]
        while let madeAt = rest.first?.endedAt {
            let batch = rest.prefix { $0.endedAt == madeAt }.prefix(1_000)
            rest = rest.dropFirst(batch.count)
            var blob: [UInt8] = []
            for mark in batch {
                MarkBlob.append(mark.mark, mark.id, mark.first, to: &blob)
                moveMark(mark.mark, to: .settled(blob: memory.nextBlob), now: now)
            }
            var sql = try SQL(db, "INSERT OR REPLACE INTO marks (seq, made_at, entries) VALUES (?,?,?)")
            sql.bind(memory.nextBlob)
            sql.bind(madeAt)
            sql.bind(blob)
            try sql.run()
            memory.nextBlob += 1
        }
    }
}
