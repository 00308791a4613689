import GRDB
package import PushModel

// Reading all rows, and filling, for those who move a store or change its keys.
extension SQLiteStore: StoredRows {
    package func records(after key: Digest16?, limit: Int) async throws(StoreError) -> [StoredRecord] {
        try await read { try SQLiteRows.records(SQL($0, SQLiteRows.records), after: key, limit: limit) }
    }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> (pushes: [StoredOwed], next: StoredPlace?) {
        try await read { try SQLiteRows.pushes(SQL($0, SQLiteRows.pushes), after: place, limit: limit) }
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> (marks: [StoredMark], next: StoredPlace?) {
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

extension SQLiteStore: StoreNotes {
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
        try await maintain { _, db in
            var changed = 0
            for row in rows { changed += try SQLiteRows.reseal(row, db) }
            return changed
        }
    }
}

/// All rows of each table, in the order of its key.
enum SQLiteRows {
    /// By slot, so by key but where eight bytes are shared; behind the slot of the last key, or from its
    /// first one on when that record has gone.
    static let records = """
        SELECT \(SQLiteRecords.columns) FROM records WHERE slot >= coalesce(
        (SELECT slot + 1 FROM records WHERE slot BETWEEN ?1 AND ?2 AND key = ?3), ?1) ORDER BY slot LIMIT ?4
        """
    /// The same of a file that no relay of this version has opened, whose records have no slots yet.
    static let recordsByKey =
        "SELECT \(SQLiteRecords.columns) FROM records WHERE key > ?3 ORDER BY key LIMIT ?4"
    static let pushes = pushes(address: "address")
    /// The same of a file that no relay of this version has opened.
    static let pushesBeforeAddresses = pushes(address: "NULL")

    private static func pushes(address: String) -> String {
        """
        SELECT seq, id, lane, class, origin, record, touched_at, not_before, custody_ends, attempt, epoch,
        parked, mark, sealed, first, \(address) FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?
        """
    }

    static let marks = "SELECT seq, made_at, entries FROM marks WHERE seq > ? ORDER BY seq LIMIT ?"
    /// More than there are seal keys and relays.
    static let settings = "SELECT name, value FROM settings WHERE name <> 'revisions' LIMIT 10000"

    static func records(_ sql: SQL, after key: Digest16?, limit: Int) throws -> [StoredRecord] {
        var sql = sql
        if let key {
            sql.bind(slotOf: key)
        } else {
            sql.bind(Int64.min)
            sql.bind(Int64.min)
            sql.bind([])
        }
        sql.bind(limit)
        defer { sql.finish() }
        var records: [StoredRecord] = []
        while try sql.step() { records.append(try SQLiteRecords.record(sql)) }
        return records
    }

    /// A row's number, in eight bytes.
    private static func place(_ row: Int64) -> StoredPlace {
        withUnsafeBytes(of: row.bigEndian) { Array($0) }
    }

    private static func row(_ place: StoredPlace) -> Int64 { place.reduce(0) { $0 << 8 | Int64($1) } }

    static func pushes(
        _ sql: SQL, after place: StoredPlace, limit: Int
    ) throws -> (pushes: [StoredOwed], next: StoredPlace?) {
        var sql = sql
        sql.bind(row(place))
        sql.bind(limit)
        defer { sql.finish() }
        var pushes: [StoredOwed] = []
        while try sql.step() {
            guard let id = try sql.digest(1),
                let level = PushClass(rawValue: UInt8(truncatingIfNeeded: sql.int(3))),
                let origin = try sql.digest(4)
            else { throw StoreError(.corrupt) }
            let push = StoredPush(
                row: sql.int(0), id: PushID(id), lane: sql.text(2), pushClass: level, origin: origin,
                record: try sql.digest(5), touchedAt: sql.time(6), address: try sql.digest(15),
                notBefore: sql.time(7), custodyEnds: sql.time(8), attempt: Int(sql.int(9)),
                epoch: sql.int(10),
                parked: sql.int(11) == 1, mark: try sql.digest(12), sealed: sql.bytes(13))
            let first = OutcomeKind(rawValue: UInt8(truncatingIfNeeded: sql.int(14)))
            pushes.append(StoredOwed(push: push, first: first))
        }
        return (pushes, pushes.last.map { Self.place($0.push.row) })
    }

    static func marks(
        _ sql: SQL, after place: StoredPlace, limit: Int
    ) throws -> (marks: [StoredMark], next: StoredPlace?) {
        var sql = sql
        sql.bind(row(place))
        // Each row is one batch of at most a thousand.
        sql.bind(max(1, limit / 1_000))
        defer { sql.finish() }
        var marks: [StoredMark] = []
        var next: Int64?
        while try sql.step() {
            next = sql.int(0)
            let madeAt = sql.time(1)
            sql.withBytes(2) { bytes in
                for entry in 0..<bytes.count / MarkBlob.entryBytes {
                    let start = entry * MarkBlob.entryBytes
                    let name = Digest16(UnsafeRawBufferPointer(rebasing: bytes[start..<start + 16]))
                    guard let name, let (id, first) = MarkBlob.read(entry, of: bytes) else { continue }
                    marks.append(StoredMark(mark: name, id: id, first: first, endedAt: madeAt))
                }
            }
        }
        return (marks, next.map(Self.place))
    }

    static func settings(_ sql: SQL, _ prefix: String) throws -> [String: [UInt8]] {
        defer { sql.finish() }
        var settings: [String: [UInt8]] = [:]
        while try sql.step() {
            let name = sql.text(0)
            if name.hasPrefix(prefix) { settings[name] = sql.bytes(1) }
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
            memory.revision = max(memory.revision, Int64(clamping: revision))
            memory.revisionsReserved = max(memory.revisionsReserved, memory.revision)
            var sql = try SQL(db, "INSERT OR REPLACE INTO settings (name, value) VALUES ('revisions', ?)")
            sql.bind(String(memory.revisionsReserved))
            try sql.run()
        }
    }

    private func fill(_ record: StoredRecord, _ db: Database) throws {
        let revision = Int64(clamping: record.revision)
        try SQLiteRecords.insert(record, revision: revision, db)
        memory.revision = max(memory.revision, revision)
    }

    /// Marks of one moment share a row, as those of one batch do.
    private func fill(_ marks: [StoredMark], now: UnixTime, _ db: Database) throws {
        var rest = marks[...]
        while let madeAt = rest.first?.endedAt {
            let batch = rest.prefix { $0.endedAt == madeAt }.prefix(1_000)
            rest = rest.dropFirst(batch.count)
            var blob: [UInt8] = []
            for mark in batch {
                let entry = blob.count / MarkBlob.entryBytes
                MarkBlob.append(mark.mark, mark.id, mark.first, to: &blob)
                moveMark(mark.mark, to: .settled(blob: memory.nextBlob, entry: entry), now: now)
            }
            var sql = try SQL(db, "INSERT INTO marks (seq, made_at, entries) VALUES (?,?,?)")
            sql.bind(memory.nextBlob)
            sql.bind(madeAt)
            sql.bind(blob)
            try sql.run()
            memory.nextBlob += 1
        }
    }
}
