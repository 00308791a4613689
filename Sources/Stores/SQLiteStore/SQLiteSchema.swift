import GRDB
import PushModel

/// The schema, in named steps that only go forward.
///
/// Clear columns are those of docs/architecture.md; everything else is sealed above the engine.
/// `owners.alive_until` and all other times are Unix milliseconds.
enum SQLiteSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 records, outbox, marks") { db in
            try db.execute(sql: statements)
        }
        migrator.registerMigration(slots) { try placeRecords($0) }
        migrator.registerMigration(addresses) { db in
            try db.execute(sql: "ALTER TABLE outbox ADD COLUMN address BLOB")
        }
        migrator.registerMigration("4 parked pushes by registration") { db in
            try db.execute(
                sql: """
                    CREATE INDEX parked_by_record ON outbox (record) WHERE parked = 1 AND record IS NOT NULL
                    """)
        }
        migrator.registerMigration("5 expired records by version") { db in try db.execute(sql: expiredIndex) }
        return migrator
    }

    /// What has expired, of each owner by number. No condition on the time: it stands in the index, so that
    /// what is too young is passed over there.
    private static let expiredIndex = """
        CREATE INDEX expired_by_owner ON records (owner, version, state_at, expires_at)
        WHERE \(SQLiteRecords.isListed)
        """

    /// The step that gives each record a slot. Until then records stand in a tree of whole rows by key, whose
    /// inner pages name eight pages each: seven levels and 58 MiB of inner pages for a million, so that each
    /// find misses the cache more than twice. By slot there are three, and 3 MiB (decision 0041).
    static let slots = "2 records by slot"

    /// The step that says of each push which address its registration named.
    static let addresses = "3 addresses of pushes"

    private static func placeRecords(_ db: Database) throws {
        try db.execute(sql: slotStatements)
        try copyRecords(db)
        // GRDB forgets its prepared statements here, so that none may be in use.
        try db.execute(sql: "DROP TABLE records_by_key; \(indexes)")
    }

    /// A record that cannot be read goes along, aside: it is told with the others that stand there.
    private static func copyRecords(_ db: Database) throws {
        let rows = try SQL(db, "SELECT \(SQLiteRecords.columns) FROM records_by_key ORDER BY key")
        defer { rows.finish() }
        while try rows.step() {
            if let record = SQLiteRecords.record(rows) {
                try SQLiteRecords.insert(record, revision: Int64(clamping: record.revision), db)
            } else {
                try SQLiteRecords.insertAside(rows, db)
            }
        }
    }

    private static let slotStatements = """
        DROP INDEX records_by_space;
        DROP INDEX records_by_owner;
        DROP INDEX records_by_address;
        DROP INDEX records_by_expiry;
        ALTER TABLE records RENAME TO records_by_key;
        CREATE TABLE records (slot INTEGER PRIMARY KEY, key BLOB NOT NULL, \(columns));
        """

    private static let columns = """
        space TEXT NOT NULL,
        owner BLOB,
        address BLOB,
        version BLOB NOT NULL,
        state INTEGER NOT NULL,
        state_at INTEGER NOT NULL,
        touched_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        body BLOB NOT NULL
        """

    private static let indexes = """
        CREATE INDEX records_by_space ON records (space, revision);
        CREATE INDEX records_by_owner ON records (owner, revision) WHERE owner IS NOT NULL;
        CREATE INDEX records_by_address ON records (address, revision) WHERE address IS NOT NULL;
        CREATE INDEX records_by_expiry ON records (expires_at) WHERE expires_at < 9223372036854775807;
        """

    private static let statements = """
        CREATE TABLE records (key BLOB PRIMARY KEY NOT NULL, \(columns)) WITHOUT ROWID;
        \(indexes)
        CREATE TABLE outbox (
            seq INTEGER PRIMARY KEY,
            id BLOB NOT NULL,
            lane TEXT NOT NULL,
            class INTEGER NOT NULL,
            origin BLOB NOT NULL,
            record BLOB,
            touched_at INTEGER NOT NULL,
            not_before INTEGER NOT NULL,
            custody_ends INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            owner BLOB NOT NULL,
            epoch INTEGER NOT NULL,
            parked INTEGER NOT NULL,
            mark BLOB,
            first INTEGER,
            sealed BLOB NOT NULL
        );
        CREATE INDEX parked_by_origin ON outbox (lane, class, origin, not_before, seq) WHERE parked = 1;
        CREATE INDEX parked_by_due ON outbox (lane, not_before) WHERE parked = 1;
        CREATE INDEX parked_by_custody ON outbox (custody_ends) WHERE parked = 1;

        CREATE TABLE marks (seq INTEGER PRIMARY KEY, made_at INTEGER NOT NULL, entries BLOB NOT NULL);
        CREATE TABLE owners (owner BLOB PRIMARY KEY NOT NULL, alive_until INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE settings (name TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
        """
}
