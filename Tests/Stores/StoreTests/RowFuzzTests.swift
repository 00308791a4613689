import Foundation
import GRDB
import PostgresStore
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import SQLiteStore

/// Random values of random types in random columns of every table; then everything is read that can be read.
/// Nothing may trap or throw, and all rows that were left alone must be as they were.
@Suite("Rows that hold anything", .timeLimit(.minutes(30)))
struct RowFuzzTests {
    typealias AnyStore = Engine & StoreUpkeep & OwedLookup

    private static let lane = "acme-chat/apns/production"
    private static let space = "main/device"
    private static let owner = OwnerID(Digest16(high: 5, low: 5))
    private static let count: UInt64 = 12
    /// Numbers of pushes that have not been.
    private static let fresh = Atomic<UInt64>(5_000)

    private static func digest(_ number: UInt64) -> Digest16 {
        var random = SeededRandom(seed: number &+ 31)
        return Digest16(high: random.next(), low: random.next())
    }

    private static let keys = (0..<count).map(digest)

    private static func push(_ number: UInt64, _ now: UnixTime, parked: Bool = true) -> StoredPush {
        let random = digest(number + 700)
        return StoredPush(
            row: 0, id: PushID(at: now, random: random.high, random.low), lane: lane, pushClass: .normal,
            origin: digest(number + 900), record: number < count ? digest(number) : nil, touchedAt: now,
            notBefore: now,
            custodyEnds: now + .seconds(86_400), attempt: 0, epoch: 0, parked: parked,
            mark: digest(number + 1_100), sealed: [UInt8](repeating: 7, count: 100))
    }

    /// Twelve records and twelve parked pushes, and marks of pushes that have ended.
    private static func fill(_ store: any AnyStore, _ now: UnixTime) async throws {
        let puts = (0..<count).map { number in
            StoredChange.put(
                StoredRecord(
                    key: digest(number), space: space, owner: digest(number % 3 + 300),
                    address: digest(number % 4 + 400), version: number, state: .live, touchedAt: now,
                    expiresAt: .distantFuture, revision: 0, body: [UInt8](repeating: 3, count: 40)), if: .any)
        }
        _ = try await store.apply(puts, now: now)
        try await store.renew(for: .seconds(3_600))
        let pushes = (0..<count).map { push($0, now) }
        _ = try await store.accept(pushes, changes: [], now: now)
        let ended = (50..<53 as Range<UInt64>).map { push($0, now, parked: false) }
        guard case .committed(let admissions) = try await store.accept(ended, changes: [], now: now) else {
            throw StoreError(.corrupt)
        }
        let steps = zip(ended, admissions).compactMap { push, admission -> StoredSettlement? in
            guard case .owed(let row, let epoch) = admission else { return nil }
            return StoredSettlement(
                row: row, id: push.id, epoch: epoch, mark: push.mark, step: .settle, first: .rejected)
        }
        _ = try await store.settle(steps, feedback: [], now: now)
        try await store.put(setting: "fuzz/a", to: [1, 2, 3])
    }

    /// - Returns: what the records are, and which pushes could be claimed.
    private static func readAll(
        _ store: any AnyStore, _ now: UnixTime
    ) async throws -> (records: [StoredRecord?], pushes: Set<PushID>) {
        let records = try await store.find(keys, now: now)
        for index in [StoredIndex.space(space), .owner(digest(300)), .address(digest(401))] {
            _ = try await store.page(index, after: 0, limit: 3, now: now)
        }
        for number in 0..<count {
            let record = StoredRecord(
                key: digest(number + 2_000), space: space, owner: nil, address: digest(number), version: 1,
                state: .live, touchedAt: now, expiresAt: .distantFuture, revision: 0, body: [1])
            _ = try await store.apply(
                [.put(record, if: .besideLive(touchedNotAfter: now)), .delete(record.key, if: .any)],
                now: now)
        }
        _ = try await store.tally([digest(300), digest(301)])
        _ = try await store.purge(before: UnixTime(milliseconds: 1), limit: 10)
        _ = try await store.setRecordsAside([])
        _ = try await store.takeOver([lane, Aside.text(lane)], limit: 100)
        _ = try await store.reclaim(limit: 100)
        _ = try await store.letGo(besides: [lane, Aside.text(lane)], limit: 100)
        _ = try await store.takeOver([lane, Aside.text(lane)], limit: 100)
        try await store.renew(for: .seconds(3_600))
        _ = try await store.enrol(in: [.relays], for: .seconds(20))
        _ = try await store.livingOwners()
        _ = try await store.load()
        _ = try await store.oldest()
        for number in 0..<count { _ = try await store.owed(push(number, now).id) }
        // A repeat of each, which must not fail for the mark of a row that holds something else.
        for number in 0..<count {
            var again = push(fresh.wrappingAdd(1, ordering: .relaxed).newValue, now)
            again.mark = push(number, now).mark
            _ = try await store.accept([again], changes: [], now: now)
        }
        try await walk(store)
        _ = try await store.settings("")
        _ = try await store.setting("fuzz/a")
        _ = try await store.lastRevision()
        _ = try await store.lastTime(.look)
        #expect(try await store.lastTime(.raise(now)) != nil)
        _ = try await store.endCustody(before: UnixTime(milliseconds: 1), limit: 10)
        _ = try await store.nextDue(lane)
        let claimed = try await store.claim(lane, due: now, limit: 1_000)
        // Put back for the next round.
        let steps = claimed.compactMap { push in
            LaneName(push.lane).map { lane in
                StoredSettlement(
                    row: push.row, id: push.id, epoch: push.epoch, mark: push.mark,
                    step: .retry(notBefore: now, attempt: push.attempt, lane: lane, parked: true), first: nil)
            }
        }
        let ours = try await store.settle(steps, feedback: [], now: now)
        #expect(ours.allSatisfy { $0 })
        let next = try await store.nextDue(lane)
        #expect(claimed.isEmpty || next.map { $0 <= now } == true)
        return (records, Set(claimed.map(\.id)))
    }

    private static func walk(_ store: any AnyStore) async throws {
        func end<Row>(_ page: (StoredPlace) async throws -> RowPage<Row>) async throws {
            var place: StoredPlace? = []
            for _ in 0..<100 {
                guard let after = place else { return }
                place = try await page(after).next
            }
            Issue.record("a walk did not end")
        }
        try await end { try await store.records(after: $0, limit: 5) }
        try await end { try await store.pushes(after: $0, limit: 5) }
        try await end { try await store.marks(after: $0, limit: 5) }
    }

    /// Looks that all but the spoiled are as they were.
    private static func judge(
        _ found: (records: [StoredRecord?], pushes: Set<PushID>), but spoiled: Set<UInt64>, _ now: UnixTime,
        _ label: String
    ) {
        for number in 0..<count where !spoiled.contains(number) {
            let record = found.records[Int(number)]
            #expect(record?.version == number && record?.body.count == 40, "record \(number), \(label)")
            #expect(found.pushes.contains(push(number, now).id), "push \(number), \(label)")
        }
    }

    // MARK: SQLite

    private static let sqliteColumns = [
        "records": [
            "key", "space", "owner", "address", "version", "state", "state_at", "touched_at", "expires_at",
            "revision", "body"
        ],
        "outbox": [
            "seq", "id", "lane", "class", "origin", "record", "touched_at", "not_before", "custody_ends",
            "attempt", "owner", "epoch", "parked", "mark", "first", "sealed", "address"
        ]
    ]

    private static func value(_ random: inout SeededRandom) -> DatabaseValue {
        let numbers: [Int64] = [-1, .min, .max, 0, 1, 7, 300, 1 << 32, 1 << 60]
        switch random.next() % 7 {
        case 0: return .null
        case 1: return numbers[Int(random.next() % UInt64(numbers.count))].databaseValue
        case 2: return Int64(bitPattern: random.next()).databaseValue
        case 3: return [3.5, -1e300, 1e300][Int(random.next() % 3)].databaseValue
        case 4:
            let texts = ["", "x", "12", "9223372036854775807", String(repeating: "long", count: 400)]
            return texts[Int(random.next() % UInt64(texts.count))].databaseValue
        default:
            let counts = [0, 1, 8, 15, 16, 17, 33, 5_000]
            let byte = UInt8(truncatingIfNeeded: random.next())
            return Data(repeating: byte, count: counts[Int(random.next() % 8)]).databaseValue
        }
    }

    /// Lets columns hold NULL, as a page does whose bytes were changed.
    private static func loosen(_ path: String) throws {
        let file = try DatabaseQueue(path: path)
        try file.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA writable_schema = ON")
            try db.execute(
                sql: """
                    UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')
                    WHERE type = 'table' AND name IN ('records', 'outbox', 'marks')
                    """)
            try db.execute(sql: "PRAGMA writable_schema = RESET")
        }
        try file.close()
    }

    @Test("SQLite", arguments: 0..<12 as Range<UInt64>)
    func sqlite(_ seed: UInt64) async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        var random = SeededRandom(seed: seed)
        let clock = ManualClock()
        let now = clock.now
        func open() throws -> SQLiteStore {
            try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: seed))
        }
        var store = try open()
        try await Self.fill(store, now)
        try store.close()
        try Self.loosen(folder.path)
        store = try open()
        Self.judge(try await Self.readAll(store, now), but: [], now, "before")
        var spoiled: Set<UInt64> = []
        for round in 0..<6 {
            let number = random.next() % Self.count
            spoiled.insert(number)
            var label = ""
            for (table, columns) in Self.sqliteColumns {
                let column = columns[Int(random.next() % UInt64(columns.count))]
                let value = Self.value(&random)
                let name = table == "records" ? Self.digest(number) : Self.push(number, now).id.value
                label += " \(table).\(column) = \(value)".prefix(80)
                // A number that another row has, or one that is none, changes nothing.
                let key = table == "records" ? "key" : "id"
                try? await store.maintain { _, db in
                    try db.execute(
                        sql: "UPDATE \(table) SET \(column) = ? WHERE \(key) = ?",
                        arguments: [value, Data(name.bytes)])
                }
            }
            let (made, entries) = (Self.value(&random), Self.value(&random))
            try? await store.maintain { _, db in
                try db.execute(
                    sql: "INSERT INTO marks (made_at, entries) VALUES (?, ?)", arguments: [made, entries])
            }
            Self.judge(
                try await Self.readAll(store, now), but: spoiled, now, "seed \(seed), round \(round):\(label)"
            )
            if round % 2 == 1 {
                try store.close()
                store = try open()
            }
        }
        try store.close()
        let reader = try SQLiteReader(folder.path, clock.world(seed: 1).instant)
        var place: StoredPlace? = []
        while let after = place { place = try await reader.records(after: after, limit: 4).next }
        _ = try await reader.lastRevision()
    }

    // MARK: PostgreSQL

    private static let numbers = [
        "-1", "0", "1", "-9223372036854775808", "9223372036854775807", "1152921504606846976"
    ]

    private static func spoil(
        _ number: UInt64, _ now: UnixTime, _ random: inout SeededRandom
    ) -> String {
        func pick(_ values: [String]) -> String { values[Int(random.next() % UInt64(values.count))] }
        func uuid(_ digest: Digest16) -> String { "'\(UUIDDigits.text(high: digest.high, low: digest.low))'" }
        let texts = ["''", "'x'", "'aside:'", "repeat('long', 400)"]
        let small = ["-32768", "32767", "7", "-1"]
        let other = uuid(Digest16(high: random.next(), low: random.next()))
        let record = [
            ("version", pick(numbers)), ("state_at", pick(numbers)), ("touched_at", pick(numbers)),
            ("expires_at", pick(numbers)), ("revision", pick(numbers)), ("owner", pick(["NULL", other])),
            ("address", pick(["NULL", other])), ("state", pick(small)), ("space", pick(texts)),
            ("body", pick(["''::bytea", "decode(repeat('00', 5000), 'hex')"]))
        ]
        let push = [
            ("touched_at", pick(numbers)), ("not_before", pick(numbers)), ("custody_ends", pick(numbers)),
            ("epoch", pick(numbers)), ("owner", other), ("origin", other), ("record", pick(["NULL", other])),
            ("address", pick(["NULL", other])), ("mark", pick(["NULL", other])),
            ("attempt", pick(["-1", "2147483647", "-2147483648"])),
            ("class", pick(small)), ("first", pick(small + ["NULL"])), ("lane", pick(texts)),
            ("sealed", "''::bytea")
        ]
        let (one, two) = (
            record[Int(random.next() % UInt64(record.count))], push[Int(random.next() % UInt64(push.count))]
        )
        let stranger = uuid(Digest16(high: random.next(), low: 9))
        return """
            UPDATE records SET \(one.0) = \(one.1) WHERE key = \(uuid(digest(number)));
            UPDATE outbox SET \(two.0) = \(two.1) WHERE id = \(uuid(Self.push(number, now).id.value));
            UPDATE marks SET minute = \(pick(["2147483647", "-2147483648"])), first = \(pick(small))
            WHERE mark = \(uuid(digest(50 + 1_100)));
            INSERT INTO owners (owner, alive_until, rows, bytes)
            VALUES (\(stranger), \(pick(numbers)), \(pick(numbers)), \(pick(numbers)));
            INSERT INTO members (owner, grp, joined, alive_until, has_left)
            VALUES (\(stranger), 'relays', \(pick(numbers)), \(pick(numbers)), false);
            UPDATE heads SET revision = \(pick(["-5", "9223372036854775807", "revision"]));
            UPDATE settings SET value = decode('\(pick(["", "ff", "ffffffffffffffffff", "0011"]))', 'hex')
            WHERE name NOT LIKE 'copy/%';
            """
    }

    @Test("PostgreSQL", arguments: 0..<4 as Range<UInt64>)
    func postgres(_ seed: UInt64) async throws {
        let database = try await PostgresDatabase()
        var random = SeededRandom(seed: seed)
        let now = database.clock.now
        var limits = database.limits
        limits.outboxRows = 100_000
        let store = try await database.open(Self.owner, limits: limits)
        try await Self.fill(store, now)
        Self.judge(try await Self.readAll(store, now), but: [], now, "before")
        let name = String(database.url.split(separator: "/").last ?? "")
        var spoiled: Set<UInt64> = []
        for round in 0..<5 {
            let number = random.next() % Self.count
            spoiled.insert(number)
            let sql = Self.spoil(number, now, &random)
            try await PostgresCluster.shared.execute(sql, database: name)
            Self.judge(
                try await Self.readAll(store, now), but: spoiled, now, "seed \(seed), round \(round): \(sql)")
        }
        await store.close()
        let next = try await database.open(OwnerID(Digest16(high: 6, low: 6)), limits: limits)
        _ = try await Self.readAll(next, now)
        await next.close()
    }
}
