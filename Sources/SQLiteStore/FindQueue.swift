import GRDB
import PushModel
import Synchronization

/// Joins waiting finds into one read: a read of its own costs six times the look-up (TOOLCHAIN B).
///
/// The batch is taken before the read's snapshot begins, so a find sees every commit that stood when it was
/// asked.
final class FindQueue: Sendable {
    private struct Ask: Sendable {
        let keys: [Digest16]
        let now: UnixTime
        let answer: CheckedContinuation<Result<[StoredRecord?], StoreError>, Never>
    }

    private struct State {
        var asks: [Ask] = []
        var isDraining = false
    }

    private let pool: DatabasePool
    private let limits: SQLiteLimits
    private let state = Mutex(State())

    init(pool: DatabasePool, limits: SQLiteLimits) {
        self.pool = pool
        self.limits = limits
    }

    func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        if keys.isEmpty { return [] }
        let result = await withCheckedContinuation { continuation in
            let begins = state.withLock { state -> Bool? in
                guard state.asks.count < limits.waitingJobs else { return nil }
                state.asks.append(Ask(keys: keys, now: now, answer: continuation))
                defer { state.isDraining = true }
                return !state.isDraining
            }
            guard let begins else {
                continuation.resume(returning: .failure(StoreError(.unavailable)))
                return
            }
            if begins { pool.asyncUnsafeRead { self.drain($0) } }
        }
        return try result.get()
    }

    private func drain(_ connection: Result<Database, any Error>) {
        while true {
            let batch = state.withLock { state -> [Ask] in
                let batch = Array(state.asks.prefix(limits.findsPerRead))
                state.asks.removeFirst(batch.count)
                if batch.isEmpty { state.isDraining = false }
                return batch
            }
            if batch.isEmpty { return }
            for (ask, result) in zip(batch, answers(batch, connection)) {
                ask.answer.resume(returning: result)
            }
        }
    }

    private func answers(
        _ batch: [Ask], _ connection: Result<Database, any Error>
    ) -> [Result<[StoredRecord?], StoreError>] {
        do {
            let db = try connection.get()
            var results: [Result<[StoredRecord?], StoreError>] = []
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
