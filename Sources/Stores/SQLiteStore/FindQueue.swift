import GRDB
import PushModel
import Synchronization

/// Joins waiting finds into one read on the writing connection, before the changes of its next commit.
///
/// A connection of its own would read concurrently, but each commit of the other empties its page cache:
/// every find then reads the tree's pages from the file again (three a find, measured), and takes and gives
/// back the log's read lock. The writer's cache knows its own commits. The price is that a find waits for the
/// commit under way, as the push that follows it will for the next.
///
/// A find of many keys still uses a separate connection: a call with a thousand ids would otherwise delay all
/// other finds and commits. In both cases one find is one reading: it sees all rows as one commit left them.
final class FindQueue: Sendable {
    private struct Ask: Sendable {
        let keys: [Digest16]
        /// How many of them are worth a place in ``FrequentRows``.
        let often: Int
        let now: UnixTime
        let answer: LockedContinuation<Result<[StoredRecord?], StoreError>>
    }

    private let commits: CommitQueue
    private let pool: DatabasePool
    private let limits: SQLiteLimits
    private let asks = Mutex<[Ask]>([])

    init(commits: CommitQueue, pool: DatabasePool, limits: SQLiteLimits) {
        self.commits = commits
        self.pool = pool
        self.limits = limits
        commits.joins(self)
    }

    var isEmpty: Bool { asks.withLock(\.isEmpty) }

    /// Sees every commit that stood when it was asked, and perhaps the first few later ones: all records are
    /// as they were at one moment.
    func find(
        _ keys: [Digest16], often: Int = 0, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord?] {
        if keys.isEmpty { return [] }
        if keys.count > limits.keysPerTurn { return try await findApart(keys, now) }
        let result = await withLockedContinuation(of: Result<[StoredRecord?], StoreError>.self) {
            continuation in
            let isFirst = asks.withLock { asks -> Bool? in
                guard asks.count < limits.waitingJobs else { return nil }
                asks.append(Ask(keys: keys, often: often, now: now, answer: continuation))
                return asks.count == 1
            }
            switch isFirst {
            case nil: continuation.resume(returning: .failure(StoreError(.unavailable)))
            case true?: if !commits.wake() { refuseAll() }
            case false?: break
            }
        }
        return try result.get()
    }

    /// Reads many keys beside the writer, in one transaction.
    private func findApart(_ keys: [Digest16], _ now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        do {
            let (found, unreadable) = try await pool.read { db in
                var unreadable: [Int64] = []
                var lookup = try SQLiteRecords.Lookup(db)
                let found = try keys.map { try lookup.find($0, now: now, &unreadable) }
                return (found, unreadable)
            }
            commits.setAside(unreadable)
            return found
        } catch {
            throw SQLFault.translate(error)
        }
    }

    /// Answers waiting finds, in a transaction in which nothing has been changed yet, or in one of their own.
    func answer(_ db: Database, _ frequent: inout FrequentRows) {
        let batch = asks.withLock { asks -> [Ask] in
            var keys = 0
            let batch = Array(
                asks.prefix(limits.findsPerRead).prefix { ask in
                    defer { keys += ask.keys.count }
                    return keys == 0 || keys + ask.keys.count <= limits.keysPerRead
                })
            asks.removeFirst(batch.count)
            return batch
        }
        if batch.isEmpty { return }
        do {
            var unreadable: [Int64] = []
            let found = try read(batch, db, &frequent, &unreadable)
            commits.setAside(unreadable)
            for (ask, found) in zip(batch, found) { ask.answer.resume(returning: found) }
        } catch {
            let fault = SQLFault.translate(error)
            for ask in batch { ask.answer.resume(returning: .failure(fault)) }
        }
    }

    /// The store is closed.
    private func refuseAll() {
        let batch = asks.withLock { asks -> [Ask] in
            defer { asks = [] }
            return asks
        }
        for ask in batch { ask.answer.resume(returning: .failure(StoreError(.unavailable))) }
    }

    /// A damaged page fails only the finds that ask for its rows.
    private func read(
        _ batch: [Ask], _ db: Database, _ frequent: inout FrequentRows, _ unreadable: inout [Int64]
    ) throws -> [Result<[StoredRecord?], StoreError>] {
        var results: [Result<[StoredRecord?], StoreError>] = []
        results.reserveCapacity(batch.count)
        try transact(db) {
            var lookup = try SQLiteRecords.Lookup(db)
            for ask in batch {
                do {
                    var found: [StoredRecord?] = []
                    found.reserveCapacity(ask.keys.count)
                    for (place, key) in ask.keys.enumerated() {
                        guard place < ask.often else {
                            found.append(try lookup.find(key, now: ask.now, &unreadable))
                            continue
                        }
                        found.append(try findOften(key, now: ask.now, &lookup, &frequent, &unreadable))
                    }
                    results.append(.success(found))
                } catch {
                    results.append(.failure(SQLFault.translate(error)))
                }
            }
        }
        return results
    }

    private func transact(_ db: Database, _ body: () throws -> Void) throws {
        if db.isInsideTransaction { try body() } else { try db.transact(.deferred, body) }
    }

    /// From memory if it is there: the writer drops rows that it changes, and nobody else writes.
    private func findOften(
        _ key: Digest16, now: UnixTime, _ lookup: inout SQLiteRecords.Lookup, _ frequent: inout FrequentRows,
        _ unreadable: inout [Int64]
    ) throws -> StoredRecord? {
        if let row = frequent.row(key) { return row.expiresAt > now ? row : nil }
        let row = try lookup.find(key, now: now, &unreadable)
        if let row { frequent.keep(row) }
        return row
    }
}
