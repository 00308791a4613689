import GRDB
import PostgresStore
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import SQLiteStore

/// What stands aside: put there once, all of it, in bounded steps, and not for ever.
@Suite("What stands aside", .timeLimit(.minutes(30)))
struct AsideTests {
    private static let owner = OwnerID(Digest16(high: 5, low: 5))
    private let folder: TemporaryStore
    private let clock = ManualClock()

    init() throws { folder = try TemporaryStore() }

    private static func record(_ number: UInt64, _ now: UnixTime) -> StoredRecord {
        StoredRecord(
            key: RowFuzz.digest(number), space: "main/device", owner: nil, address: nil, version: 1,
            state: .live, touchedAt: now, expiresAt: .distantFuture, revision: 0, body: [1])
    }

    /// Reads what all operations before it have written.
    private static func texts(_ sql: String, _ store: SQLiteStore) async throws -> [String] {
        try await store.maintain { _, db in try String.fetchAll(db, sql: sql) }
    }

    /// A text of no encoding, and one of which a prefix of many characters is long in bytes.
    @Test(
        "A record whose space is no text of ours is set aside once",
        arguments: ["CAST(x'ff00fe' AS TEXT)", "printf('%.*c', 400, 'é')"])
    func once(_ space: String) async throws {
        let (now, spy) = (clock.now, LogSpy())
        let store = try SQLiteStore(
            path: folder.path, owner: Self.owner, world: clock.world(seed: 1), journal: spy.journal)
        _ = try await store.apply([.put(Self.record(1, now), if: .any)], now: now)
        try await store.maintain { _, db in try db.execute(sql: "UPDATE records SET space = \(space)") }
        var seen: [[String]] = []
        for _ in 0..<3 {
            #expect(try await store.find([RowFuzz.digest(1)], now: now) == [nil])
            seen.append(try await Self.texts("SELECT hex(space) FROM records", store))
        }
        #expect(seen[0][0].hasPrefix("61736964653A") && Set(seen).count == 1)
        #expect(try await store.setRecordsAside([]) == 1)
        // To a word about it, it is none: what it holds stays.
        _ = try await store.apply([.expire(RowFuzz.digest(1), at: now, if: .any)], now: now)
        #expect(try await Self.texts("SELECT hex(body) FROM records", store) == ["01"])
        #expect(spy.text.count { $0.contains("records cannot be read") } == 1)
        try store.close()
    }

    @Test("A record that is met while another is set aside is set aside too")
    func together() async throws {
        let now = clock.now
        // A push that cannot be read is told between the commit and the answers to it: then the second record
        // is met.
        let met = Mutex<(@Sendable () -> Void)?>(nil)
        let journal = Journal { _, event, _ in
            if "\(event)".contains("owed pushes") { met.withLock(\.self)?() }
        }
        let store = try SQLiteStore(
            path: folder.path, owner: Self.owner, world: clock.world(seed: 1), journal: journal)
        _ = try await store.apply([1, 2].map { .put(Self.record($0, now), if: .any) }, now: now)
        _ = try await store.accept([RowFuzz.push(120, now)], changes: [], now: now)
        try await store.maintain { _, db in
            try db.execute(sql: "UPDATE records SET revision = -1; UPDATE outbox SET touched_at = -1")
        }
        let second = SQLiteRecords.slots(of: RowFuzz.digest(2)).lowerBound
        met.withLock { $0 = { store.queue.setAside([second]) } }
        #expect(try await store.find([RowFuzz.digest(1)], now: now) == [nil])
        #expect(try await store.nextDue(RowFuzz.lane) == nil)
        met.withLock { $0 = nil }
        for _ in 0..<3 {
            #expect(try await store.find([1, 2].map(RowFuzz.digest), now: now) == [nil, nil])
            _ = try await Self.texts("SELECT 1", store)
        }
        #expect(try await store.setRecordsAside([]) == 2)
        try store.close()
    }

    @Test("Pushes that cannot be read are set aside a few at a time, and those behind them come")
    func bounded() async throws {
        let now = clock.now
        var limits = SQLiteLimits()
        limits.unreadableAtOnce = 3
        let store = try SQLiteStore(
            path: folder.path, owner: Self.owner, limits: limits, world: clock.world(seed: 1))
        let pushes = (0..<11 as Range<UInt64>).map { RowFuzz.push($0 + 120, now) }
        _ = try await store.accept(pushes, changes: [], now: now)
        try await store.maintain { _, db in
            try db.execute(sql: "UPDATE outbox SET origin = x'01' WHERE seq <= 10")
        }
        var aside: [Int] = []
        var claimed: [PushID] = []
        for _ in 0..<10 where claimed.isEmpty {
            #expect(try await store.nextDue(RowFuzz.lane).map { $0 <= now } == true)
            claimed = try await store.claim(RowFuzz.lane, due: now, limit: 100).map(\.id)
            aside.append(try await store.load().lanes[Aside.text(RowFuzz.lane)] ?? 0)
        }
        #expect(claimed == [pushes[10].id] && aside.last == 10)
        // Three by the question, and three of each class by the claim.
        #expect(zip([0] + aside, aside).allSatisfy { $1 - $0 <= 12 } && aside.count > 1)
        try store.close()
    }

    /// Sets a push aside whose custody would never end.
    private static func end(
        _ store: any Engine, _ now: UnixTime, _ change: (String) async throws -> Void
    ) async throws {
        let push = RowFuzz.push(120, now)
        let accepted = try await store.accept([push], changes: [], now: now)
        guard case .committed(let admissions) = accepted, case .owed(let row, let epoch) = admissions[0]
        else { throw StoreError(.corrupt) }
        try await change("UPDATE outbox SET custody_ends = 9223372036854775807")
        let step = StoredSettlement(
            row: row, id: push.id, epoch: epoch, mark: push.mark, step: .park, first: nil)
        #expect(try await store.setAside([step]) == [true])
        let latest = UnixTime(milliseconds: .max - 1)
        #expect(try await store.endCustody(before: latest, limit: 10) == [Aside.text(RowFuzz.lane): 1])
    }

    @Test("A push whose custody was changed does not stand aside for ever, in SQLite")
    func sqliteCustody() async throws {
        let store = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 1))
        try await Self.end(store, clock.now) { sql in
            try await store.maintain { _, db in try db.execute(sql: sql) }
        }
        try store.close()
    }

    @Test("Nor in PostgreSQL")
    func postgresCustody() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(Self.owner)
        let name = String(database.url.split(separator: "/").last ?? "")
        try await store.renew(for: .seconds(3_600))
        try await Self.end(store, database.clock.now) { sql in
            try await PostgresCluster.shared.execute(sql, database: name)
        }
        await store.close()
    }

    @Test("A record that stands aside does not expire, in PostgreSQL")
    func postgresExpiry() async throws {
        let database = try await PostgresDatabase()
        let (store, now) = (try await database.open(Self.owner), database.clock.now)
        let name = String(database.url.split(separator: "/").last ?? "")
        _ = try await store.apply([.put(Self.record(1, now), if: .any)], now: now)
        let cluster = try await PostgresCluster.shared
        try await cluster.execute("UPDATE records SET space = 'aside:' || space", database: name)
        _ = try await store.apply([.expire(RowFuzz.digest(1), at: now, if: .any)], now: now)
        let left = try await cluster.execute("SELECT state, octet_length(body) FROM records", database: name)
        #expect(left == "0|1")
        await store.close()
    }

    @Test("Numbers at the end of their range leave enough for what comes")
    func numbers() async throws {
        let now = clock.now
        var store = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 1))
        try await RowFuzz.fill(store, now)
        let (most, blob) = (RowBounds.counts.upperBound, MarkIndex.lastBlob)
        try await store.maintain { _, db in
            try db.execute(
                sql: """
                    UPDATE records SET revision = \(most) WHERE slot = (SELECT min(slot) FROM records);
                    UPDATE outbox SET seq = \(most) WHERE seq = 1;
                    UPDATE marks SET seq = \(blob) WHERE seq = 1;
                    DELETE FROM settings WHERE name = 'revisions'
                    """)
        }
        try store.close()
        store = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 2))
        // Also for a row that stands where the next one is to be.
        try await store.maintain { _, db in
            try db.execute(sql: "UPDATE outbox SET seq = (SELECT max(seq) + 1 FROM outbox) WHERE seq = 2")
            let next = "(SELECT max(seq) + 1 FROM outbox WHERE seq < 100000)"
            try db.execute(sql: "UPDATE outbox SET seq = \(next) WHERE seq = 3")
        }
        for _ in 0..<2 { _ = try await RowFuzz.read(store, but: Set(0..<RowFuzz.count), now) }
        // A mark of before, and one of a batch that came after it, are both known.
        for number in [50, 51] as [UInt64] {
            var again = RowFuzz.push(number + 7_000, now)
            again.mark = RowFuzz.push(number, now).mark
            let accepted = try await store.accept([again], changes: [], now: now)
            #expect(accepted == .committed([.repeated(of: RowFuzz.push(number, now).id, first: .rejected)]))
        }
        try store.close()
    }

    @Test("Pushes are found beside ids that say another time")
    func known() async throws {
        let now = clock.now
        let store = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 1))
        let pushes = (0..<200 as Range<UInt64>).map { number in
            RowFuzz.push(number + 120, now + .seconds(10 * Int64(number)))
        }
        _ = try await store.accept(pushes, changes: [], now: now)
        let changed: [Int64] = [20, 50, 75, 100, 101 + 49, 180]
        try await store.maintain { _, db in
            for (place, row) in changed.enumerated() {
                let time = String(repeating: place % 2 == 0 ? "f" : "0", count: 16)
                try db.execute(
                    sql: "UPDATE outbox SET id = x'\(time)0000000000000001' WHERE seq = \(row)")
            }
        }
        for (place, push) in pushes.enumerated() where !changed.contains(Int64(place + 1)) {
            #expect(try await store.owed(push.id) != nil, "push \(place)")
        }
        try store.close()
    }

    @Test("A last time that no clock wrote is none", arguments: [8, 7, 0])
    func lastTime(_ bytes: Int) async throws {
        let database = try await PostgresDatabase()
        let now = database.clock.now
        let world = database.clock.world(seed: 1)
        let sqlite = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let postgres = try await database.open(Self.owner)
        for store in [sqlite, postgres] as [any RowFuzz.AnyStore] {
            try await store.put(setting: LastTime.setting, to: [UInt8](repeating: 0xFF, count: bytes))
            #expect(try await store.lastTime(.look) == nil)
            #expect(try await store.lastTime(.raise(now)) == now)
            #expect(try await store.lastTime(.look) == now)
        }
        try sqlite.close()
        await postgres.close()
    }
}
