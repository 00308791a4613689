/// Why a store could not do what it was asked.
package typealias StoreError = CodedError<StoreErrorCode>

package enum StoreErrorCode: String, AdvisingErrorCode {
    /// The outbox has reached its bound of rows or bytes.
    case full
    /// The engine is closed, or its disk or connection failed; nothing was written.
    case unavailable
    /// The disk has no room left; nothing was written.
    case noSpace
    /// The file system is mounted read-only, or has turned so after a fault; nothing was written.
    case readOnly
    /// The connection ended before the answer came: it may have been written, or not.
    case uncertain
    /// A row or the file cannot be what we wrote.
    case corrupt
    /// The key file does not open this store.
    case wrongKey
    /// Another process has the store open.
    case inUse
    /// The schema is newer than this program.
    case newerSchema
    /// A step of the schema was begun and not finished.
    case halfMigrated
    /// The database server refuses the user, the password, the database or a right.
    case denied
    /// A setting that durability needs could not be had (read back at start).
    case notDurable
    /// The store was copied, or is being copied, to another one, which owes what this one owed.
    case moved
    /// The store is half of a copy.
    case unfinished

    package var blame: Blame {
        switch self {
        case .full, .unavailable, .uncertain: .ourselves
        case .noSpace, .readOnly, .corrupt, .wrongKey, .inUse, .newerSchema, .halfMigrated, .denied,
            .notDurable, .moved, .unfinished:
            .operator
        }
    }
    package var retry: RetryAdvice {
        switch self {
        case .full, .unavailable, .noSpace, .readOnly, .uncertain, .inUse: .later
        case .corrupt, .wrongKey, .newerSchema, .halfMigrated, .denied, .notDurable, .moved, .unfinished:
            .never
        }
    }
    package var sentence: String {
        switch self {
        case .full: "The outbox is full. Raise `outbox.rows` or mend the lane that does not drain."
        case .unavailable: "The store cannot be reached. Look at the disk or the database."
        case .noSpace: "The store's disk is full. Make room; the relay goes on by itself."
        case .readOnly:
            "The store's file system is read-only. Check the system log, repair the disk, and mount it again."
        case .uncertain: "The connection to the store ended before it had answered."
        case .corrupt: "The store holds a row that this program did not write. Restore it from a backup."
        case .wrongKey: "The key file does not fit this store. Put back the key file that made it."
        case .inUse: "Another process has this store open. Stop it, or use a state directory of your own."
        case .newerSchema: "The store was written by a newer Sealbell. Start that one, or restore a backup."
        case .halfMigrated:
            "A schema change was started but not finished. Restore a backup, or finish it by hand "
                + "(docs/errors.md says how)."
        case .denied:
            "The database server refuses us. Look at `store.url`, its user, password and the user's rights."
        case .notDurable:
            "The store does not wait for the disk (SQLite: synchronous=FULL; PostgreSQL: fsync, "
                + "full_page_writes, synchronous_commit). Change that setting."
        case .moved:
            "This store was copied to another one. Start with that one, or see sealbell store reopen."
        case .unfinished: "This store is half of a copy. Run the same sealbell store copy again to finish it."
        }
    }
}

/// Digests of names under the store's key.
package protocol NameDigests: Sendable {
    /// The keyed digest that stands for a name. Computed, not looked up: the same as long as the store has
    /// its key file, whatever is rotated, and worth nothing to anyone without it.
    func digest(of name: RecordKey) -> Digest16
}

/// How a record stood when it was read: its sealed row, which says nothing without the store's keys.
/// Conclusions from the record hold as long as the row is the same.
package final class RecordSight: Sendable {
    package let row: StoredRecord
    /// Which keys of the file could open it.
    package let keys: UInt64

    package init(_ row: StoredRecord, keys: UInt64) {
        self.row = row
        self.keys = keys
    }

    /// Whether the row at that place is the one that was seen, byte for byte; `nil` there is not.
    ///
    /// It is read where it stands: a row that is taken out of a list is copied whole.
    package func isSame(_ rows: [StoredRecord?], at place: Int) -> Bool {
        guard let body = rows[place]?.body else { return false }
        return row.revision == rows[place]?.revision && row.key == rows[place]?.key
            && row.touchedAt == rows[place]?.touchedAt && row.expiresAt == rows[place]?.expiresAt
            && row.version == rows[place]?.version && row.state == rows[place]?.state
            && row.owner == rows[place]?.owner && row.address == rows[place]?.address
            && row.space == rows[place]?.space
            && row.body.withUnsafeBytes { seen in
                body.withUnsafeBytes { stands in
                    // Mostly it is the same memory, because the engine keeps rows that are asked for often.
                    seen.count == stands.count
                        && (seen.baseAddress == stands.baseAddress || seen.elementsEqual(stands))
                }
            }
    }
}

/// Records looked up by their names.
package protocol RecordLookup: Sendable {
    /// One answer for each key, in order; `nil` where there is none (a record past `expiresAt` is none).
    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?]
    /// The same, and how the first `count` records stood, for a later ``find(_:while:)``. There is no sight
    /// of a record that is not there, nor at a registry that keeps none.
    func find(
        _ keys: [RecordKey], seeing count: Int
    ) async throws(StoreError) -> (records: [Record?], sights: [RecordSight?])
    /// Finds records while others stand as they were seen: all of it in one reading. Those that were seen are
    /// not opened again.
    ///
    /// - Returns: `nil` when one of the others was written, has ended, or may not be opened any more.
    func find(_ keys: [RecordKey], while sights: [RecordSight]) async throws(StoreError) -> [Record?]?
}

/// Records by name. Above the engines; below the roles.
package protocol Registry: NameDigests, RecordLookup {
    /// Records of an index in order of revision, after the given revision; at most `limit`, and fewer only
    /// when there are no more. ``RecordIndex/expired(owner:by:)`` has an order of its own.
    func page(_ index: RecordIndex, after revision: UInt64, limit: Int) async throws(StoreError) -> [Record]
    /// Makes all the changes or none, durably.
    func apply(_ changes: [Change]) async throws(StoreError) -> Applied
    /// Removes at most `limit` records whose `expiresAt` is before the moment; how many went.
    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int
    /// Removes at most `limit` records of an owner, expired ones and tombstones too; how many went.
    func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int
    /// How many records each of these owners has, and what they take, expired ones and tombstones too; one
    /// answer for each, in order.
    ///
    /// - Parameter weighing: whether bytes are counted too. That reads every record: it is for a bound that
    ///   is looked at now and then. Without, bytes are 0, and only the names of records are gone through.
    func tally(_ owners: [RecordKey], weighing: Bool) async throws(StoreError) -> [RecordTally]
    /// The clock by which records and pushes end, if the store keeps one.
    var clock: DoubtedClock? { get }
}

/// One that keeps no sights.
extension RecordLookup {
    package func find(
        _ keys: [RecordKey], seeing count: Int
    ) async throws(StoreError) -> (records: [Record?], sights: [RecordSight?]) {
        (try await find(keys), [])
    }

    package func find(
        _ keys: [RecordKey], while sights: [RecordSight]
    ) async throws(StoreError) -> [Record?]? { nil }
}
