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
/// forgotten content is gone.
package final class SQLiteStore: Sendable {
    let pool: DatabasePool
    let queue: CommitQueue
    let finds: FindQueue
    let limits: SQLiteLimits
    let world: World
    let openedAt: ContinuousClock.Instant
    private let lock: FileLock
    package let owner: OwnerID
    package let ended = EndedPushes()

    /// Opens or makes the file (mode 0600).
    ///
    /// - Parameter owner: this process; all other owners are dead, for only one process can open the file.
    /// - Throws: `.inUse` when another process holds it, `.newerSchema`, `.notDurable`, `.corrupt`.
    /// Commits so far, for measurements.
    package var commits: Int { queue.commits }

    package init(
        path: String, owner: OwnerID, limits: SQLiteLimits = SQLiteLimits(), synchronous: Synchronous = .full,
        world: World, journal: Journal = .silent
    ) throws(StoreError) {
        self.limits = limits
        self.world = world
        self.owner = owner
        openedAt = world.instant()
        do {
            lock = try FileLock(Self.lockFile(of: path))
            pool = try Self.openPool(path, limits: limits)
            let writer = SQLiteWriter(owner: owner.value, limits: limits)
            try Self.prepare(pool, writer: writer, synchronous: synchronous, now: world.now())
            try pool.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA cache_size = -\(limits.writerCacheKiB)")
                // Otherwise commits after an undone savepoint may be lost in a crash (decision 0134).
                try db.execute(sql: "PRAGMA cache_spill = OFF")
            }
            queue = CommitQueue(
                pool: pool, writer: writer, limits: limits, ended: ended, journal: journal)
            finds = FindQueue(commits: queue, pool: pool, limits: limits)
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
                if self.queue.commits == forgotten {
                    // The log is empty until the next commit.
                    let end = self.world.instant() + self.limits.forgetEvery
                    await self.queue.batchBegun.wait(until: end, in: self.world)
                    seen = self.queue.commits
                    continue
                }
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
                    // A reader of another program is in the way. Tries become rarer and rarer, because each
                    // delays commits for a moment.
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
        try await queue.submit(.bulk) { writer, db in
            // Keepers write rows as they like.
            writer.frequent.forgetAll()
            return try operation(writer, db)
        }
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
    /// The file that the process locks which has the store at that path open (flock(2)).
    package static func lockFile(of path: String) -> String { path + ".lock" }
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
