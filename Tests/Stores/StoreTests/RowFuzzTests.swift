import Foundation
import GRDB
import PostgresStore
import PushModel
import PushTesting
import Testing

@testable import SQLiteStore

/// Each column of every table that the schema has, whatever its last step has made of it, with each value
/// that no relay writes there; then everything is read that can be read.
@Suite("Rows that hold anything", .timeLimit(.minutes(30)))
struct RowFuzzTests {
    /// A value for a column.
    private typealias Change = (column: String, value: String)

    /// - Returns: what this round tries of all pairs; none is passed over, or the test says so.
    private static func part(_ all: [Change], _ rows: Int, _ round: Int, of rounds: Int) -> [Change] {
        #expect(all.count <= rows * rounds, "\(all.count) values want more rounds")
        return (0..<rows).map { all[(round * rows + $0) % all.count] }
    }

    // MARK: SQLite

    private static let rounds = 17

    private static let values = [
        "NULL", "-1", "-9223372036854775808", "9223372036854775807", "0", "1", "7", "300", "4294967296",
        "281474976710655", "4503599627370496", "9007199254740992", "9007199254740993", "1152921504606846976",
        "3.5", "-1e300", "1e300", "''", "'x'", "'9223372036854775807'", "'aside:'",
        "printf('%.*c', 1600, 'l')", "printf('%.*c', 400, 'é')", "CAST(x'61736964653aff' AS TEXT)",
        "CAST(x'ff' AS TEXT)", "CAST(x'610062' AS TEXT)", "x''", "x'00'", "zeroblob(8)",
        "x'ffffffffffffffff'", "zeroblob(15)", "zeroblob(16)", "x'ffffffffffffffffffffffffffffffff'",
        "zeroblob(17)", "zeroblob(5000)"
    ]

    /// Tables with their columns, without the list of the schema's steps.
    private static func columns(_ db: Database) throws -> [(table: String, columns: [String])] {
        let tables = try String.fetchAll(
            db,
            sql: """
                SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'
                AND name <> 'grdb_migrations' ORDER BY name
                """)
        return try tables.map { ($0, try db.columns(in: $0).map(\.name)) }
    }

    private static func spoil(_ path: String, _ round: Int, _ now: UnixTime) throws {
        try LooseFile.change(path) { db in
            for (table, columns) in try columns(db) {
                let all = columns.flatMap { column in values.map { (column, $0) } }
                let isLarge = ["records", "outbox"].contains(table)
                let rows = isLarge ? RowFuzz.spoiled.count : RowFuzz.few
                // One process at a time has a row of its own, and deletes it at its start.
                if table == "owners" { continue }
                let names = try DatabaseValue.fetchAll(
                    db, sql: "SELECT \(columns[0]) FROM \(table) ORDER BY 1 LIMIT \(rows)")
                for (place, change) in part(all, rows, round, of: rounds).enumerated() {
                    let (column, name): (String, DatabaseValue) =
                        switch table {
                        case "records": ("key", Data(RowFuzz.digest(UInt64(place)).bytes).databaseValue)
                        case "outbox":
                            ("id", Data(RowFuzz.push(UInt64(place), now).id.value.bytes).databaseValue)
                        default: (columns[0], names[place % names.count])
                        }
                    let sql = "UPDATE \(table) SET \(change.column) = \(change.value) WHERE \(column) = ?"
                    do { try db.execute(sql: sql, arguments: [name]) } catch {
                        // A name that another row has, or a number that is none.
                        #expect(change.column == columns[0], "\(sql): \(error)")
                    }
                    #expect(!isLarge || change.column == columns[0] || db.changesCount == 1, "\(sql)")
                }
            }
        }
    }

    @Test("SQLite", arguments: 0..<rounds)
    func sqlite(_ round: Int) async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let clock = ManualClock()
        let now = clock.now
        func open(_ owner: UInt64) throws -> SQLiteStore {
            try SQLiteStore(
                path: folder.path, owner: OwnerID(Digest16(high: RowFuzz.relays, low: owner)),
                world: clock.world(seed: owner))
        }
        var store = try open(0)
        try await RowFuzz.fill(store, now)
        // In every other round a start finds the file so, and what the process before had in memory.
        if round % 2 == 1 {
            _ = try await store.claim(RowFuzz.lane, due: now, limit: 1_000)
            try store.close()
        }
        try Self.spoil(folder.path, round, now)
        if round % 2 == 1 { store = try open(1) }
        RowFuzz.judge(
            try await RowFuzz.read(store, but: RowFuzz.spoiled, now), now, "round \(round), at first")
        for owner in 2...3 as ClosedRange<UInt64> {
            _ = try await store.claim(RowFuzz.lane, due: now, limit: 1_000)
            try store.close()
            store = try open(owner)
        }
        RowFuzz.judge(
            try await RowFuzz.read(store, but: RowFuzz.spoiled, now), now, "round \(round), and then")
        try store.close()
        let instant = clock.world(seed: 1).instant
        try await RowFuzz.walk(try SQLiteReader(folder.path, instant))
        _ = try SQLiteInspection.look(at: folder.path, within: .seconds(60), instant)
    }

    // MARK: PostgreSQL

    private static let postgresRounds = 3

    private static func values(_ type: String) -> [String] {
        let own =
            switch type {
            case "bigint":
                [
                    "-1", "0", "1", "-9223372036854775808", "9223372036854775807", "1152921504606846976",
                    "9007199254740992", "9007199254740993", "4503599627370497"
                ]
            case "integer": ["-1", "2147483647", "-2147483648", "16777217"]
            case "smallint": ["-32768", "32767", "7", "-1"]
            case "boolean": ["true", "false"]
            case "uuid":
                ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]
                    .map { "'\($0)'" } + ["gen_random_uuid()"]
            case "text": ["''", "'x'", "'aside:'", "repeat('long', 400)", "repeat('é', 400)"]
            default:
                [("", 1), ("ff", 1), ("00", 2), ("ff", 8), ("7f", 8), ("ff", 16), ("7f", 16), ("00", 5_000)]
                    .map { byte, count in "decode(repeat('\(byte)', \(count)), 'hex')" }
            }
        return own + ["NULL"]
    }

    /// Lines of `table|column|type`, without the list of the schema's steps, and without the head of
    /// revisions (`head`).
    private static let columns = """
        SELECT table_name, column_name, data_type FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name NOT IN ('migrations', 'heads') ORDER BY 1, 2
        """

    private static func uuid(_ digest: Digest16) -> String {
        "'\(UUIDDigits.text(high: digest.high, low: digest.low))'"
    }

    private static func spoil(_ lines: [String], _ round: Int, _ now: UnixTime) -> String {
        // Of others, who have been: what a process says of itself it says again.
        let ghosts = (0..<RowFuzz.few).map { uuid(Digest16(high: 77, low: UInt64($0))) }
        var sql = ghosts.map { ghost in
            """
            INSERT INTO owners (owner, alive_until) VALUES (\(ghost), 1);
            INSERT INTO members (owner, grp, joined, alive_until, has_left)
            VALUES (\(ghost), 'relays', 0, 1, false);
            INSERT INTO ended (owner, id, at) VALUES (\(ghost), \(ghost), 1);
            """
        }.joined()
        let tables = Dictionary(grouping: lines.map { $0.split(separator: "|").map(String.init) }) { $0[0] }
        for (table, columns) in tables.sorted(by: { $0.key < $1.key }) {
            let all = columns.flatMap { column in values(column[2]).map { (column[1], $0) } }
            let isLarge = ["records", "outbox"].contains(table)
            let rows = isLarge ? RowFuzz.spoiled.count : RowFuzz.few
            for (place, change) in part(all, rows, round, of: postgresRounds).enumerated() {
                let number = UInt64(place)
                let row =
                    switch table {
                    case "records": "key = \(uuid(RowFuzz.digest(number)))"
                    case "outbox": "id = \(uuid(RowFuzz.push(number, now).id.value))"
                    case "owners", "members", "ended": "owner = \(ghosts[place])"
                    case "marks": "mark = \(uuid(RowFuzz.digest(50 + number + 1_100)))"
                    default: "ctid = (SELECT ctid FROM \(table) ORDER BY ctid LIMIT 1 OFFSET \(place))"
                    }
                // What the server refuses changes nothing.
                sql += """
                    DO $$ BEGIN UPDATE \(table) SET \(change.column) = \(change.value) WHERE \(row);
                    EXCEPTION WHEN others THEN NULL; END $$;
                    """
            }
        }
        return sql
    }

    @Test("PostgreSQL", arguments: 0..<postgresRounds)
    func postgres(_ round: Int) async throws {
        let database = try await PostgresDatabase()
        let now = database.clock.now
        var limits = database.limits
        limits.outboxRows = 100_000
        func open(_ owner: UInt64) async throws -> PostgresStore {
            try await database.open(OwnerID(Digest16(high: RowFuzz.relays, low: owner)), limits: limits)
        }
        var store = try await open(1)
        try await RowFuzz.fill(store, now)
        let name = String(database.url.split(separator: "/").last ?? "")
        let cluster = try await PostgresCluster.shared
        let columns = try await cluster.execute(Self.columns, database: name).split(separator: "\n")
        try await cluster.execute(Self.spoil(columns.map(String.init), round, now), database: name)
        RowFuzz.judge(
            try await RowFuzz.read(store, but: RowFuzz.spoiled, now), now, "round \(round), at first")
        // What it owed is free from then on, and the next owner takes it over.
        await store.close()
        store = try await open(2)
        RowFuzz.judge(
            try await RowFuzz.read(store, but: RowFuzz.spoiled, now), now, "round \(round), and then")
        await store.close()
    }

    @Test("PostgreSQL's head of revisions")
    func head() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(OwnerID(Digest16(high: RowFuzz.relays, low: 1)))
        let (name, now) = (String(database.url.split(separator: "/").last ?? ""), database.clock.now)
        for (place, value) in Self.values("bigint").dropLast().enumerated() {
            try await PostgresCluster.shared.execute("UPDATE heads SET revision = \(value)", database: name)
            let before = try await store.lastRevision()
            let record = PostgresSamples.record(UInt64(place))
            #expect(try await store.apply([.put(record, if: .absent)], now: now) == .committed)
            let found = try await store.find([record.key], now: now)[0]
            #expect(found.map { $0.revision == before + 1 } == true, "\(value)")
        }
        try await PostgresCluster.shared.execute("DELETE FROM heads", database: name)
        let record = PostgresSamples.record(99)
        await #expect(throws: StoreError(.corrupt)) {
            try await store.apply([.put(record, if: .absent)], now: now)
        }
        await store.close()
    }
}
