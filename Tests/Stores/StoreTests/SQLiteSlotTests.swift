import Foundation
import GRDB
import PushModel
import PushTesting
import Testing

@testable import SQLiteStore

@Suite("Slots of records in a SQLite file", .timeLimit(.minutes(30)))
struct SQLiteSlotTests {
    private static let owner = OwnerID(Digest16(high: 3, low: 3))
    private let world = ManualClock().world(seed: 3)
    private let folder: TemporaryStore

    init() throws { folder = try TemporaryStore() }

    private func record(_ key: Digest16, _ number: UInt64) -> StoredRecord {
        StoredRecord(
            key: key, space: "main/device", owner: Digest16(high: 9, low: number % 3),
            address: number.isMultiple(of: 2) ? Digest16(high: 8, low: number) : nil, version: number,
            state: number.isMultiple(of: 5) ? .expired(at: UnixTime(milliseconds: 77)) : .live,
            touchedAt: UnixTime(milliseconds: Int64(number)), expiresAt: .distantFuture, revision: number,
            body: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: Int(number % 40)))
    }

    /// A file as the first step of the schema left it.
    private func olderFile(_ path: String, _ records: [StoredRecord]) throws {
        let pool = try DatabasePool(path: path)
        defer { try? pool.close() }  // Its rows are committed.
        try SQLiteSchema.migrator.migrate(pool, upTo: "1 records, outbox, marks")
        try pool.write { db in
            for record in records {
                var sql = try SQL(
                    db, "INSERT INTO records (\(SQLiteRecords.columns)) VALUES (?,?,?,?,?,?,?,?,?,?,?)")
                SQLiteRecords.bind(record, revision: Int64(record.revision), to: &sql)
                try sql.run()
            }
        }
    }

    private func sweep(_ rows: any StoredRows) async throws -> [StoredRecord] {
        var found: [StoredRecord] = []
        var place: StoredPlace? = []
        // Ends: each page begins behind the last.
        while let after = place {
            let page = try await rows.records(after: after, limit: 100)
            found += page.rows
            place = page.next
        }
        return found
    }

    @Test("A file of the first step keeps every record, seen before and after its relay has opened it")
    func older() async throws {
        var random = SeededRandom(seed: 5)
        let records = (1...1_000 as ClosedRange<UInt64>).map { number in
            record(Digest16(high: random.next(), low: random.next()), number)
        }.sorted { $0.key < $1.key }
        try olderFile(folder.path, records)
        #expect(try await sweep(SQLiteReader(folder.path, World.live.instant)) == records)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        #expect(try await sweep(engine) == records)
        #expect(try await engine.find(records.map(\.key), now: world.now()) == records)
        let owned = try await engine.page(
            .owner(Digest16(high: 9, low: 1)), after: 0, limit: 1_000, now: world.now())
        let wanted = records.filter { $0.version % 3 == 1 }.sorted { $0.revision < $1.revision }
        #expect(owned == wanted)
        try engine.close()
        #expect(try await sweep(SQLiteReader(folder.path, World.live.instant)) == records)
        let again = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        #expect(try await sweep(again) == records, "the step is taken once")
        try again.close()
    }

    @Test("With all its slots taken by others a record is refused, and nothing is changed")
    func full() async throws {
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let now = world.now()
        let keys = (0...16 as ClosedRange<UInt64>).map { Digest16(high: 7, low: $0) }
        for key in keys.dropLast() {
            let change = StoredChange.put(record(key, key.low + 1), if: .absent)
            #expect(try await engine.apply([change], now: now) == .committed)
        }
        let last = record(keys[16], 99)
        await #expect(throws: StoreError(.full)) { try await engine.apply([.put(last, if: .any)], now: now) }
        let standing = try await engine.find(keys, now: now)
        #expect(standing.map { $0?.version } == (1...16).map { UInt64($0) } + [nil])
        _ = try await engine.apply([.delete(keys[3], if: .any)], now: now)
        #expect(try await engine.apply([.put(last, if: .absent)], now: now) == .committed)
        #expect(try await engine.find([keys[16]], now: now).first??.version == 99)
        try engine.close()
    }
}
