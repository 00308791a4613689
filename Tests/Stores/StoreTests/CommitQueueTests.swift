import Dispatch
import GRDB
import PushModel
import PushTesting
@testable import SQLiteStore
import Synchronization
import Testing

@Suite("What a fault in a batch costs", .timeLimit(.minutes(30)))
struct CommitQueueTests {
    private let bench: QueueRig

    init() throws { bench = try QueueRig() }

    @Test("A job that fails undoes itself alone; its neighbours share one commit", arguments: [0, 57, 99])
    func oneFault(at faulty: Int) async throws {
        let outcomes = try await bench.together(100) { number, db in
            try QueueRig.write(number, db)
            if number == faulty { throw SQLFault(code: 1) }
        }
        #expect(outcomes.filter { $0.value != nil }.map(\.key) == [faulty])
        #expect(outcomes[faulty] == .unavailable)
        #expect(try await bench.written() == (0..<100).filter { $0 != faulty })
        #expect(bench.commits == 1)
    }

    @Test("However many fail, the rest costs one commit")
    func manyFaults() async throws {
        let outcomes = try await bench.together(200) { number, db in
            try QueueRig.write(number, db)
            if number % 2 == 0 { throw StoreError(.corrupt) }
        }
        #expect(outcomes.filter { $0.value == .corrupt }.count == 100)
        #expect(try await bench.written() == (0..<200).filter { $0 % 2 == 1 })
        #expect(bench.commits == 1)
    }

    @Test("A batch without a fault is one commit")
    func noFault() async throws {
        let outcomes = try await bench.together(100) { try QueueRig.write($0, $1) }
        #expect(outcomes.values.allSatisfy { $0 == nil })
        #expect(bench.commits == 1)
    }

    @Test("A fault that ends the whole transaction, as a full disk does, costs one round and nobody's write")
    func torn() async throws {
        let outcomes = try await bench.together(50) { number, db in
            try QueueRig.write(number, db)
            if number == 20 {
                try db.execute(sql: "ROLLBACK")
                throw SQLFault(code: 13)
            }
        }
        #expect(outcomes.filter { $0.value != nil }.map(\.key) == [20])
        #expect(try await bench.written() == (0..<50).filter { $0 != 20 })
        #expect(bench.commits == 1)
    }

    @Test("When everything ends the transaction, everything fails after a bounded number of rounds")
    func allTorn() async throws {
        let runs = Mutex(0)
        let outcomes = try await bench.together(50) { number, db in
            runs.withLock { $0 += 1 }
            try QueueRig.write(number, db)
            try db.execute(sql: "ROLLBACK")
            throw SQLFault(code: 13)
        }
        #expect(outcomes.count == 50)
        #expect(outcomes.values.allSatisfy { $0 == .noSpace })
        #expect(try await bench.written() == [])
        #expect(bench.commits == 0)
        // The batch itself, then one round for each that stood aside.
        #expect(runs.withLock(\.self) == 1 + SQLiteLimits().replays)
    }

    @Test("Bulk work shares no commit with other bulk work, and none of the small waits for more than one")
    func bulk() async throws {
        let order = Mutex<[Int]>([])
        // Every fourth is bulk: 0, 4, 8, 12, 16.
        _ = try await bench.together(20, size: { $0 % 4 == 0 ? .bulk : .small }) { number, _, db in
            order.withLock { $0.append(number) }
            try QueueRig.write(number, db)
        }
        #expect(bench.commits == 5)
        #expect(order.withLock(\.self) == (0..<20).filter { $0 % 4 != 0 } + [0, 4, 8, 12, 16])
    }

    @Test("What a failed neighbour did to the counters and the marks is taken back with its rows")
    func memory() async throws {
        let clock = ManualClock()
        let mark = Digest16(high: 3, low: 4)
        let place = Mutex<MarkIndex.Place?>(.owed(row: 7))
        let rows = Mutex(-1)
        _ = try await bench.together(3) { number, writer, db in
            try QueueRig.write(number, db)
            writer.memory.rows += 1
            if number == 1 {
                writer.insertMark(mark, row: 9, now: clock.now)
                throw SQLFault(code: 1)
            }
        }
        _ = try await bench.together(1) { _, writer, _ in
            rows.withLock { $0 = writer.memory.rows }
            place.withLock { $0 = writer.marks.place(of: mark, now: clock.now) }
        }
        #expect(rows.withLock(\.self) == 2)
        #expect(place.withLock(\.self) == nil)
    }
}

@Suite("Finds and commits share a connection", .timeLimit(.minutes(30)))
struct FindQueueTests {
    private let bench: QueueRig

    init() throws { bench = try QueueRig() }

    @Test("A find of many keys is read beside the writer: it holds up nobody, and sees one commit's rows")
    func many() async throws {
        let places: [UInt64] = [0, 127, 128, 999]
        _ = try await bench.together(places.count) { number, db in
            try SQLiteRecords.insert(bench.record(places[number]), revision: Int64(number) + 1, db)
        }
        let found = try await bench.findWhileHeld((0..<1_000).map { Digest16(high: $0, low: 7) })
        #expect(found.enumerated().filter { $0.element != nil }.map { UInt64($0.offset) } == places)
        #expect(found.compactMap { $0?.key.high } == places)
    }

    @Test(
        "What one find asks for is read in one piece: no commit goes between", arguments: [2, 128, 129, 600])
    func oneMoment(_ count: Int) async throws {
        let keys = (0..<UInt64(count)).map { Digest16(high: $0, low: 7) }
        try await bench.write(keys, version: 1)
        // A commit of all rows waits behind each find, and is made as soon as it can be.
        let versions = try await bench.find(keys, beforeVersion: 2)
        #expect(versions.count == 1, "rows of \(versions) in one answer")
    }

    @Test("A find in the transaction of a commit sees nothing of it, and is answered though the commit fails")
    func before() async throws {
        let bench = try QueueRig()
        defer { bench.folder.remove() }
        let keys = (0..<3 as Range<UInt64>).map { Digest16(high: $0, low: 7) }
        try await bench.write(keys, version: 1)
        let versions = try await bench.find(keys, before: 2) { db in
            try db.execute(sql: "ROLLBACK")
            throw SQLFault(code: 13)
        }
        #expect(versions.found == [1] && versions.code == .noSpace)
        let later = try await bench.find(keys, before: 3) { _ in }
        #expect(later.found == [1] && later.code == nil, "what failed was undone")
        #expect(try await bench.find(keys, before: 4) { _ in }.found == [3])
    }
}

/// A commit queue on a file of its own, whose commits SQLite itself counts.
private struct QueueRig {
    let folder: TemporaryStore
    private let pool: DatabasePool
    private let queue: CommitQueue
    private let finds: FindQueue
    private let counter = CommitCounter()

    init() throws {
        folder = try TemporaryStore()
        pool = try DatabasePool(path: folder.path)
        try SQLiteSchema.migrator.migrate(pool)
        let limits = SQLiteLimits()
        let writer = SQLiteWriter(owner: Digest16(high: 1, low: 1), limits: limits)
        queue = CommitQueue(pool: pool, writer: writer, limits: limits, ended: EndedPushes())
        finds = FindQueue(commits: queue, pool: pool, limits: limits)
        pool.add(transactionObserver: counter, extent: .databaseLifetime)
    }

    var commits: Int { counter.count.withLock(\.self) }

    static func write(_ number: Int, _ db: Database) throws {
        try db.execute(
            sql: "INSERT INTO settings (name, value) VALUES (?, ?)", arguments: ["\(number)", "\(number)"])
    }

    func written() async throws -> [Int] {
        try await pool.read { try String.fetchAll($0, sql: "SELECT name FROM settings") }
            .compactMap(Int.init).sorted()
    }

    func record(_ number: UInt64) -> StoredRecord {
        StoredRecord(
            key: Digest16(high: number, low: 7), space: "main/device", owner: nil, address: nil,
            version: 0, state: .live, touchedAt: UnixTime(milliseconds: 0), expiresAt: .distantFuture,
            revision: 0, body: [1, 2, 3])
    }

    /// Holds the writer until the gate is signalled. A drain that was about to end has ended: it would have
    /// taken what is handed in next.
    private func hold() async -> DispatchSemaphore {
        let gate = DispatchSemaphore(value: 0)
        let isHeld = Noted(false)
        pool.asyncWriteWithoutTransaction { _ in
            isHeld.set(true)
            gate.wait()
        }
        await isHeld.until { $0 }
        return gate
    }

    /// Asks for keys, and hears of them while the writer is held.
    func findWhileHeld(_ keys: [Digest16]) async throws -> [StoredRecord?] {
        let gate = await hold()
        defer { gate.signal() }
        return try await finds.find(keys, now: UnixTime(milliseconds: 1))
    }

    /// Writes a record of that version under each key, in one commit.
    func write(_ keys: [Digest16], version: UInt64) async throws {
        try await queue.submit { _, db in
            for key in keys {
                var record = record(key.high)
                record.version = version
                try SQLiteRecords.insert(record, revision: Int64(version), replaces: true, db)
            }
        }
    }

    /// Asks for keys while the writer is held, with a commit of all of them behind.
    ///
    /// - Returns: the versions that were found together.
    func find(_ keys: [Digest16], beforeVersion version: UInt64) async throws -> Set<UInt64> {
        let gate = await hold()
        defer { gate.signal() }
        async let found = finds.find(keys, now: UnixTime(milliseconds: 1))
        async let written: Void = write(keys, version: version)
        try await asked(for: "a commit in the queue") { queue.waiting > 0 }
        gate.signal()
        try await written
        return Set(try await found.map { $0?.version ?? 0 })
    }

    /// Asks for keys while the writer is held, with a commit behind that gives all of them a version and then
    /// does `work`.
    ///
    /// - Returns: the versions that were found together, and what the commit failed with.
    func find(
        _ keys: [Digest16], before version: UInt64, _ work: @escaping @Sendable (Database) throws -> Void
    ) async throws -> (found: Set<UInt64>, code: StoreError.Code?) {
        let gate = await hold()
        defer { gate.signal() }
        async let found = finds.find(keys, now: UnixTime(milliseconds: 1))
        async let written: StoreError.Code? = writing(keys, version, work)
        try await asked(for: "a find and a commit in the queues") { queue.waiting > 0 && !finds.isEmpty }
        gate.signal()
        let code = await written
        return (Set(try await found.map { $0?.version ?? 0 }), code)
    }

    private func writing(
        _ keys: [Digest16], _ version: UInt64, _ work: @escaping @Sendable (Database) throws -> Void
    ) async -> StoreError.Code? {
        do throws(StoreError) {
            try await queue.submit { _, db in
                for key in keys {
                    var record = record(key.high)
                    record.version = version
                    try SQLiteRecords.insert(record, revision: Int64(version), replaces: true, db)
                }
                try work(db)
            }
            return nil
        } catch {
            return error.code
        }
    }

    /// Lets so many operations wait for the same commit, and tells what each of them heard.
    func together(
        _ count: Int, _ work: @escaping @Sendable (Int, Database) throws -> Void
    ) async throws -> [Int: StoreError.Code?] {
        try await together(count) { number, _, db in try work(number, db) }
    }

    func together(
        _ count: Int, size: @escaping @Sendable (Int) -> CommitQueue.Size = { _ in .small },
        _ work: @escaping @Sendable (Int, SQLiteWriter, Database) throws -> Void
    ) async throws -> [Int: StoreError.Code?] {
        // The writer is held until all of them wait.
        let gate = await hold()
        defer { gate.signal() }
        return try await withThrowingTaskGroup(of: (Int, StoreError.Code?).self) { group in
            for number in 0..<count {
                let before = queue.waiting
                group.addTask { [queue] in
                    do throws(StoreError) {
                        try await queue.submit(size(number)) { try work(number, $0, $1) }
                        return (number, nil)
                    } catch {
                        return (number, error.code)
                    }
                }
                // In the order of their numbers.
                try await asked(for: "job \(number) in the queue") { queue.waiting > before }
            }
            gate.signal()
            var heard: [Int: StoreError.Code?] = [:]
            for try await (number, code) in group { heard[number] = .some(code) }
            return heard
        }
    }
}

private final class CommitCounter: TransactionObserver, Sendable {
    let count = Mutex(0)
    func observes(eventsOfKind: DatabaseEventKind) -> Bool { true }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ db: Database) { count.withLock { $0 += 1 } }
    func databaseDidRollback(_ db: Database) {}
}
