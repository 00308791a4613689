#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import GRDB
import GRDBSQLite
package import PushModel
import ServiceLifecycle
import Synchronization

/// The engine on one SQLite file, for one process.
///
/// WAL with `synchronous=FULL`, read back at opening; one writer that joins waiting operations into commits;
/// finds are joined likewise and read by the writer. `run` empties the log when the relay is quiet, so that
/// what was forgotten is gone.
package final class SQLiteStore: Engine {
    let pool: DatabasePool
    private let queue: CommitQueue
    private let finds: FindQueue
    private let limits: SQLiteLimits
    let world: World
    private let openedAt: ContinuousClock.Instant
    private let lock: FileLock
    package let owner: OwnerID

    /// Opens or makes the file (mode 0600).
    ///
    /// - Parameter owner: this process; all other owners are dead, for only one process can open the file.
    /// - Throws: `.inUse` when another process holds it, `.newerSchema`, `.notDurable`, `.corrupt`.
    package init(
        path: String, owner: OwnerID, limits: SQLiteLimits = SQLiteLimits(), synchronous: Synchronous = .full,
        world: World
    ) throws(StoreError) {
        self.limits = limits
        self.world = world
        self.owner = owner
        openedAt = world.instant()
        do {
            lock = try FileLock(path + ".lock")
            pool = try Self.openPool(path, limits: limits)
            let writer = SQLiteWriter(owner: owner.value, limits: limits)
            try Self.prepare(pool, writer: writer, synchronous: synchronous, now: world.now())
            try pool.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA cache_size = -\(limits.writerCacheKiB)")
            }
            queue = CommitQueue(pool: pool, writer: writer, limits: limits)
            finds = FindQueue(commits: queue, limits: limits)
        } catch {
            throw SQLFault.translate(error)
        }
    }

    private static func openPool(_ path: String, limits: SQLiteLimits) throws -> DatabasePool {
        // Made by us first, so that it is never readable to others, not even for a moment.
        let descriptor = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileLock.fault(errno) }
        _ = Foundation.close(descriptor)
        try BlankingFiles.install()
        var configuration = Configuration()
        configuration.label = "sealbell"
        configuration.maximumReaderCount = 2
        configuration.busyMode = .timeout(TimeInterval(SQLiteLimits.busySeconds))
        let (cache, pages) = (limits.cacheKiB, limits.checkpointPages)
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA secure_delete = ON")
            // Pages of its pointer map could be taken for a tree's (`PageGap`).
            try db.execute(sql: "PRAGMA auto_vacuum = NONE")
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
            try db.execute(sql: "PRAGMA cache_size = -\(cache)")
            try db.execute(sql: "PRAGMA wal_autocheckpoint = \(pages)")
        }
        return try DatabasePool(path: path, configuration: configuration)
    }

    private static func prepare(
        _ pool: DatabasePool, writer: SQLiteWriter, synchronous: Synchronous, now: UnixTime
    ) throws {
        let migrator = SQLiteSchema.migrator
        guard try pool.read({ try !migrator.hasBeenSuperseded($0) }) else { throw StoreError(.newerSchema) }
        try migrator.migrate(pool)
        try pool.writeWithoutTransaction { db in
            // After the pool has opened: GRDB sets NORMAL on its own.
            try db.execute(sql: "PRAGMA synchronous = \(synchronous == .full ? "FULL" : "NORMAL")")
            let level = try Int.fetchOne(db, sql: "PRAGMA synchronous")
            let journal = try String.fetchOne(db, sql: "PRAGMA journal_mode")
            let wipes = try Int.fetchOne(db, sql: "PRAGMA secure_delete")
            guard level == (synchronous == .full ? 2 : 1), journal == "wal", wipes == 1 else {
                throw StoreError(.notDurable)
            }
            try db.execute(sql: "DELETE FROM owners")
            try writer.load(db, now: now)
        }
    }

    /// Empties the log at start, when quiet, and at the latest every half minute, until cancelled or stopped.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            // A process that was killed left a log; so the first round empties it whatever happened since.
            var forgotten = -1
            var seen = -1
            var last = self.world.instant()
            var pause = self.limits.forgetAfter
            while !Task.isCancelled {
                do { try await self.world.sleep(self.world.instant() + pause) } catch { break }
                let commits = self.queue.commits
                let isQuiet = commits == seen || forgotten < 0
                seen = commits
                let isLate = self.world.instant() - last >= self.limits.forgetEvery
                guard commits != forgotten, isQuiet || isLate else { continue }
                do {
                    try await self.forgetNow()
                    (forgotten, last, pause) = (commits, self.world.instant(), self.limits.forgetAfter)
                } catch {
                    // A reader of another program is in the way. It is asked less and less often, for each
                    // time holds up commits for a moment.
                    pause = min(pause * 2, self.limits.forgetEvery)
                }
            }
        }
    }

    /// Moves the log into the file and empties it: from then on no deleted byte is in either.
    ///
    /// Waits ``SQLiteLimits/forgetPatience`` for readers at most: no commit can be made meanwhile.
    ///
    /// - Throws: `.unavailable` when a reader was in the way.
    package func forgetNow() async throws(StoreError) {
        do {
            try await pool.writeWithoutTransaction { [limits] db in
                sqlite3_busy_timeout(db.sqliteConnection, CInt(limits.forgetPatience.wholeMilliseconds))
                defer { sqlite3_busy_timeout(db.sqliteConnection, CInt(SQLiteLimits.busySeconds * 1_000)) }
                _ = try db.checkpoint(.truncate)
            }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    /// One operation of a keeper, in a commit with what others wait for.
    func maintain<Value: Sendable>(
        _ operation: @escaping @Sendable (SQLiteWriter, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        try await queue.submit(.bulk, operation)
    }

    /// Closes the file. Operations after it fail as `unavailable`.
    package func close() throws(StoreError) {
        queue.close()
        defer { queue.joins(nil) }
        do { try pool.close() } catch { throw SQLFault.translate(error) }
        lock.release()
    }
}

extension SQLiteStore {
    package func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        try await finds.find(keys, now: now)
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        do {
            return try await pool.read { db in
                try SQLiteRecords.page(index, after: after, limit: limit, now: now, db)
            }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    package func tally(_ owners: [Digest16]) async throws(StoreError) -> [RecordTally] {
        do {
            return try await pool.read { db in try SQLiteRecords.tally(owners, db) }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        try await queue.submit { writer, db in
            switch try writer.accept([], changes: changes, now: now, db) {
            case .committed: .committed
            case .refused(let index): .refused(index: index)
            }
        }
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.purge(before: before, limit: limit, $1) }
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.forget(owner: owner, limit: limit, $1) }
    }

    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        try await queue.submit { try $0.accept(pushes, changes: changes, now: now, $1) }
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        // A push that is settled late is at worst sent again after a crash, as it would be anyway. A reply
        // may wait for feedback.
        try await queue.submit(.bulk, lazily: feedback.isEmpty) {
            try $0.settle(steps, feedback: feedback, now: now, $1)
        }
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        try await queue.submit(.bulk) { try $0.claim(lane, due: due, limit: limit, classes: classes, $1) }
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await queue.submit { try $0.nextDue(lane, $1) }
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await queue.submit(.bulk) { try $0.endCustody(before: before, limit: limit, $1) }
    }

    package func renew(for span: Duration) async throws(StoreError) {
        let until = world.now() + span
        try await queue.submit { try $0.renew(until: until, $1) }
    }

    /// Takes those of every lane: nobody else can open the file, and a claim asks for no owner.
    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.takeOver(limit: limit, $1) }
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int { 0 }

    /// One process at a time opens the file, so it is the only member there is.
    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        let standing = world.instant() - openedAt
        return groups.map { group in
            Member(
                owner: owner, group: group, isUs: true, joinedAgo: standing, aliveFor: span, hasLeft: false)
        }
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await queue.submit(.bulk) { try $0.reclaim(limit: limit, $1) }
    }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await queue.submit { writer, _ in
            (writer.memory.rows, writer.memory.bytes, writer.memory.parked.filter { $0.value > 0 })
        }
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await queue.submit(.bulk) { writer, db in try pushes.map { try writer.setAside($0, db) } }
    }

    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await queue.submit { try SQLiteRows.lastTime(step, $1) }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await queue.submit { _, db in
            var sql = try SQL(db, "SELECT value FROM settings WHERE name = ?")
            sql.bind(name)
            defer { sql.finish() }
            return try sql.step() ? sql.bytes(0) : nil
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
            guard try sql.step() else { throw StoreError(.corrupt) }
            return sql.bytes(0)
        }
    }
}

/// The right to open the file, held by one process at a time; the system gives it back however that ends.
private final class FileLock: Sendable {
    private let descriptor: Mutex<Int32?>

    init(_ path: String) throws(StoreError) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.fault(errno) }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            close(file)
            throw StoreError(.inUse)
        }
        descriptor = Mutex(file)
    }

    static func fault(_ number: Int32) -> StoreError {
        switch number {
        case ENOSPC, EDQUOT: StoreError(.noSpace)
        case EROFS: StoreError(.readOnly)
        default: StoreError(.unavailable)
        }
    }

    func release() {
        let file = descriptor.withLock { held in
            defer { held = nil }
            return held
        }
        guard let file else { return }
        // A child that is just being started may hold a copy of the descriptor, and would hold the lock too.
        flock(file, LOCK_UN)
        close(file)
    }

    deinit { release() }
}
