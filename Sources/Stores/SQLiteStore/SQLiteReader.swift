package import PushModel
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Reads all rows of a store's file without owning it, beside a running relay or without one.
///
/// Nothing is written; each page is read by itself, so that the relay can empty its log in between.
package final class SQLiteReader: StoredRows {
    // Safety: one page at a time, under the lock.
    private let file: Mutex<ReadOnlyFile>
    /// Whether records stand by slot.
    private let hasSlots: Bool
    private let pushRows: String

    /// - Throws: `.unavailable` when this user may not read it, `.corrupt`, `.newerSchema`.
    package init(
        _ path: String, _ instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws(StoreError) {
        let isLogged = access(path + "-wal", F_OK) == 0
        let file = try ReadOnlyFile(path, isFixed: !isLogged, instant)
        do {
            let steps = try SQLiteInspection.checkSchema(file)
            hasSlots = steps.contains(SQLiteSchema.slots)
            pushRows =
                steps.contains(SQLiteSchema.addresses) ? SQLiteRows.pushes : SQLiteRows.pushesBeforeAddresses
        } catch {
            file.close()
            throw SQLFault.translate(error)
        }
        self.file = Mutex(file)
    }

    deinit { file.withLock { $0.close() } }

    package func records(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredRecord> {
        try read { file in
            guard !hasSlots else {
                return try file.statement(SQLiteRows.records) {
                    try SQLiteRows.records($0, after: place, limit: limit)
                }
            }
            return try file.statement(SQLiteRows.recordsByKey) { sql in
                var sql = sql
                sql.bind(place)
                sql.bind(limit)
                return try SQLiteRows.records(sql) { $0.bytes(0) }
            }
        }
    }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredOwed> {
        try read { file in
            try file.statement(pushRows) { try SQLiteRows.pushes($0, after: place, limit: limit) }
        }
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredMark> {
        try read { file in
            try file.statement(SQLiteRows.marks) { try SQLiteRows.marks($0, after: place, limit: limit) }
        }
    }

    package func settings(_ prefix: String) async throws(StoreError) -> [String: [UInt8]] {
        try read { file in
            try file.statement(SQLiteRows.settings) { try SQLiteRows.settings($0, prefix) }
        }
    }

    package func lastRevision() async throws(StoreError) -> UInt64 {
        try read { file in
            var highest: Int64 = 0
            for text in [
                SQLiteWriter.lastRevision, SQLiteWriter.lastReserved
            ] {
                try file.rows(text) { highest = max(highest, $0.int(0)) }
            }
            return UInt64(highest)
        }
    }

    private func read<Value: Sendable>(_ body: (ReadOnlyFile) throws -> Value) throws(StoreError) -> Value {
        do { return try file.withLock { try body($0) } } catch { throw SQLFault.translate(error) }
    }
}
