import GRDB
import PushModel
import Synchronization

/// Joins waiting finds into one read on the writing connection, between its commits.
///
/// A connection of its own would read concurrently, but each commit of the other empties its page cache:
/// every find then reads the tree's pages from the file again (three a find, measured), and takes and gives
/// back the log's read lock. The writer's cache knows its own commits. The price is that a find waits for the
/// commit under way, as the push that follows it will for the next.
final class FindQueue: Sendable {
    private struct Ask: Sendable {
        let keys: [Digest16]
        let now: UnixTime
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

    /// Sees every commit that stood when it was asked.
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
        for (ask, result) in zip(batch, answers(batch, db)) { ask.answer.resume(returning: result) }
    }

    /// The store is closed.
    private func refuseAll() {
        let batch = asks.withLock { asks -> [Ask] in
            defer { asks = [] }
            return asks
        }
        for ask in batch { ask.answer.resume(returning: .failure(StoreError(.unavailable))) }
    }

    private func answers(_ batch: [Ask], _ db: Database) -> [Result<[StoredRecord?], StoreError>] {
        do {
            var results: [Result<[StoredRecord?], StoreError>] = []
            results.reserveCapacity(batch.count)
            try db.inTransaction(.deferred) {
                for ask in batch {
                    results.append(
                        .success(try ask.keys.map { try SQLiteRecords.find($0, now: ask.now, db) }))
                }
                return .commit
            }
            return results
        } catch {
            let fault = SQLFault.translate(error)
            return batch.map { _ in .failure(fault) }
        }
    }
}
