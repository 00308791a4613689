import GRDB
import PushModel
import Synchronization

/// Joins waiting finds into one read on the writing connection, between its commits.
///
/// A connection of its own would read concurrently, but each commit of the other empties its page cache:
/// every find then reads the tree's pages from the file again (three a find, measured), and takes and gives
/// back the log's read lock. The writer's cache knows its own commits. The price is that a find waits for the
/// commit under way, as the push that follows it will for the next.
///
/// A find of many keys is read a piece at a time, behind those that wait: a call with a thousand ids would
/// hold up everybody else's finds and commits for the whole of it.
final class FindQueue: Sendable {
    private struct Ask: Sendable {
        let keys: [Digest16]
        let now: UnixTime
        /// Of the first keys.
        var found: [StoredRecord?] = []
        let answer: CheckedContinuation<Result<[StoredRecord?], StoreError>, Never>
    }

    private let commits: CommitQueue
    private let limits: SQLiteLimits
    private let asks = Mutex<[Ask]>([])

    init(commits: CommitQueue, limits: SQLiteLimits) {
        self.commits = commits
        self.limits = limits
        commits.joins(self)
    }

    var isEmpty: Bool { asks.withLock(\.isEmpty) }

    /// Sees every commit that stood when it was asked. Of those that came later it may see some: each record
    /// is as it was at one moment, not all of them at the same one.
    func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        if keys.isEmpty { return [] }
        let result = await withCheckedContinuation { continuation in
            let isFirst = asks.withLock { asks -> Bool? in
                guard asks.count < limits.waitingJobs else { return nil }
                asks.append(Ask(keys: keys, now: now, answer: continuation))
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

    /// Answers what waits, outside any transaction of the writer's.
    func answer(_ db: Database) {
        let batch = asks.withLock { asks -> [Ask] in
            let batch = Array(asks.prefix(limits.findsPerRead))
            asks.removeFirst(batch.count)
            return batch
        }
        if batch.isEmpty { return }
        do {
            let read = try readOn(batch, db)
            let rest = read.filter { $0.found.count < $0.keys.count }
            if !rest.isEmpty { asks.withLock { $0 += rest } }
            for ask in read where ask.found.count == ask.keys.count {
                ask.answer.resume(returning: .success(ask.found))
            }
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

    /// A piece of each.
    private func readOn(_ batch: [Ask], _ db: Database) throws -> [Ask] {
        var batch = batch
        try db.inTransaction(.deferred) {
            for at in batch.indices {
                let ask = batch[at]
                for key in ask.keys[ask.found.count...].prefix(limits.keysPerTurn) {
                    batch[at].found.append(try SQLiteRecords.find(key, now: ask.now, db))
                }
            }
            return .commit
        }
        return batch
    }
}
