import GRDB

/// A store's file, changed as a disk changes it: NULL may stand where the schema has none, until somebody
/// writes that column.
enum LooseFile {
    /// - Parameter body: runs in one transaction, beside whoever has the file open.
    static func change(_ path: String, _ body: (Database) throws -> Void) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        let file = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? file.close() }
        try file.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN IMMEDIATE; PRAGMA writable_schema = ON")
            let schema = try Row.fetchAll(db, sql: "SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            try db.execute(
                sql: """
                    UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table';
                    PRAGMA writable_schema = RESET
                    """)
            try body(db)
            try db.execute(sql: "PRAGMA writable_schema = ON")
            for row in schema {
                try db.execute(
                    sql: "UPDATE sqlite_master SET sql = ? WHERE name = ?",
                    arguments: [row["sql"] as String?, row["name"] as String])
            }
            try db.execute(sql: "PRAGMA writable_schema = RESET; COMMIT")
        }
    }
}
