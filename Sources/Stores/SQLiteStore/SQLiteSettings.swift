import GRDB
package import PushModel

extension SQLiteStore: StoredSettings {
    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await queue.submit { try SQLiteRows.lastTime(step, $1) }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await queue.submit { _, db in
            var sql = try SQL(db, "SELECT value FROM settings WHERE name = ?")
            sql.bind(name)
            defer { sql.finish() }
            return try sql.step() ? sql.blob(0) : nil
        }
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await queue.submit { _, db in
            var put = try SQL(db, "INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)")
            put.bind(name)
            put.bind(value)
            try put.run()
            var sql = try SQL(db, "SELECT value FROM settings WHERE name = ?")
            sql.bind(name)
            defer { sql.finish() }
            guard try sql.step(), let standing = sql.blob(0) else { throw StoreError(.corrupt) }
            return standing
        }
    }
}

// Named values, and among them the store's own last time.
extension SQLiteRows {
    static func put(setting name: String, to value: [UInt8]?, _ db: Database) throws {
        var sql = try SQL(
            db,
            value == nil
                ? "DELETE FROM settings WHERE name = ?"
                : "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)")
        sql.bind(name)
        if let value { sql.bind(value) }
        try sql.run()
    }

    /// One statement reads every record, once in the life of a file that an earlier version wrote.
    private static let newest = """
        SELECT max((SELECT coalesce(max(touched_at), 0) FROM records WHERE typeof(touched_at) = 'integer'),
        (SELECT coalesce(max(made_at), 0) FROM marks WHERE typeof(made_at) = 'integer'))
        """

    static func lastTime(_ step: LastTime, _ db: Database) throws -> UnixTime? {
        var find = try SQL(db, "SELECT value FROM settings WHERE name = ?")
        find.bind(LastTime.setting)
        let stored = try find.step() ? LastTime.time(find.bytes(0)) : nil
        find.finish()
        switch step {
        case .look: return try stored ?? lastTimeOfRows(db)
        case .raise(let time):
            if let stored, stored >= time { return stored }
            try put(setting: LastTime.setting, to: LastTime.bytes(time), db)
            return time
        case .set(let time):
            try put(setting: LastTime.setting, to: LastTime.bytes(time), db)
            return time
        }
    }

    private static func lastTimeOfRows(_ db: Database) throws -> UnixTime? {
        let rows = try SQL(db, newest)
        var latest = try rows.step() ? rows.time(0) : .distantPast
        rows.finish()
        let pushes = try SQL(db, "SELECT id FROM outbox ORDER BY seq DESC LIMIT 1")
        if try pushes.step(), let id = pushes.digest(0) {
            latest = max(latest, PushID(id).acceptedAt)
        }
        pushes.finish()
        return latest < LastTime.earliest ? nil : latest
    }
}
