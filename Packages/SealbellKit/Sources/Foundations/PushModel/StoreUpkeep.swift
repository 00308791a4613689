/// An owed push with what its own row knows beside it.
package struct StoredOwed: Sendable, Hashable {
    package var push: StoredPush
    /// Its first outcome, when there was one and the push stayed owed.
    package var first: OutcomeKind?

    package init(push: StoredPush, first: OutcomeKind?) {
        self.push = push
        self.first = first
    }
}

/// The mark of a push that has ended. (That of an owed one stands in its row.)
package struct StoredMark: Sendable, Hashable {
    package var mark: Digest16
    package var id: PushID
    package var first: OutcomeKind?
    package var endedAt: UnixTime

    package init(mark: Digest16, id: PushID, first: OutcomeKind?, endedAt: UnixTime) {
        self.mark = mark
        self.id = id
        self.first = first
        self.endedAt = endedAt
    }
}

/// What is owed, in sum.
package struct OwedSum: Sendable, Hashable {
    package var rows = 0
    package var bytes = 0
    /// Lane text → rows.
    package var lanes: [String: Int] = [:]
    /// The one that was accepted first.
    package var oldest: PushID?

    package init() {}
}

/// The position of a walk through a table, in a form that only its engine understands. Empty: the beginning.
package typealias StoredPlace = [UInt8]

/// Some rows of a table.
package struct RowPage<Row: Sendable>: Sendable {
    package var rows: [Row]
    /// Where the next page begins; `nil` behind the last row.
    package var next: StoredPlace?
    /// Rows between these that cannot be read or stand aside, as an operator finds them in the table. A page
    /// may hold nothing else.
    package var unreadable: [String]

    package init(rows: [Row] = [], next: StoredPlace? = nil, unreadable: [String] = []) {
        self.rows = rows
        self.next = next
        self.unreadable = unreadable
    }
}

/// Every row of a store, whatever its state, in an order that stands: for anyone who moves a store, looks
/// through it or seals it anew (`StoreCopier`, `StoreLook`, `SealKeyRotation`). Rows stay sealed. One that
/// cannot be read is named, and passed over.
package protocol StoredRows: Sendable {
    /// Records in order of key, expired ones and tombstones too. The first eight bytes of a key, or all
    /// sixteen, are a place.
    func records(after place: StoredPlace, limit: Int) async throws(StoreError) -> RowPage<StoredRecord>
    /// Owed pushes of every owner, in the order in which they were accepted, nearly.
    func pushes(after place: StoredPlace, limit: Int) async throws(StoreError) -> RowPage<StoredOwed>
    /// Marks of ended pushes; of two equal ones the later holds. An engine may know their time by the minute
    /// only, and an outcome of none as acceptance.
    func marks(after place: StoredPlace, limit: Int) async throws(StoreError) -> RowPage<StoredMark>
    /// Named values whose names begin so, without those that are the engine's own.
    func settings(_ prefix: String) async throws(StoreError) -> [String: [UInt8]]
    /// No revision above this one has ever been given.
    func lastRevision() async throws(StoreError) -> UInt64
}

extension Digest16 {
    /// Which part of all digests stands before this one: 0 up to 1. So it tells how far a walk through
    /// records is, since they go in order of their keys, which are digests.
    package var share: Double { Double(high) / 0x1p64 }
}

/// Rows of one kind on their way into another store.
package enum StoredPage: Sendable {
    case records([StoredRecord])
    /// They keep id, epoch and first outcome, and arrive parked, in rows of the engine's own numbers.
    case pushes([StoredOwed])
    case marks([StoredMark])
    /// The lowest revision that may be given next, less one.
    case lastRevision(UInt64)
}

/// What was sealed under an older key, sealed anew.
package enum Resealed: Sendable {
    /// Replaces the body at exactly this revision; the revision stays the same.
    case record(Digest16, revision: UInt64, body: [UInt8])
    case push(row: Int64, id: PushID, sealed: [UInt8])
}

/// What keepers of a store may do beside the ways of ``Engine``: they move it and change its keys.
package typealias StoreUpkeep = StoredRows & StoreSettings & StoreFilling & StoreResealing

/// What relays and tools on one store tell each other through it. Asked when a sealed store is opened, by
/// `SealKeyRotation` and by `StoreCopier`.
package protocol StoreSettings: Sendable {
    var owner: OwnerID { get }
    /// Owners that are alive by the engine's clock, without this one.
    func livingOwners() async throws(StoreError) -> [OwnerID]
    /// Writes a named value over the one that stands; `nil` removes it.
    func put(setting name: String, to value: [UInt8]?) async throws(StoreError)
}

/// Moving a store into another one. Asked by `StoreCopier`.
package protocol StoreFilling: Sendable {
    /// Inserts rows, pushes as this owner's, and writes a named value, in one commit. A record or mark that
    /// stands under a row's key stays as it is; the same push must not come twice.
    func fill(_ page: StoredPage, noting name: String, _ value: [UInt8]) async throws(StoreError)
    /// Refuses every lease, push and record from now on, no matter who writes it: also a process that has
    /// slept through the end of its lease, or of another version. False takes that back. What was being
    /// written is committed or refused when this returns.
    func bar(_ isBarred: Bool) async throws(StoreError)
}

/// Sealing rows anew under another key. Asked by `SealKeyRotation`.
package protocol StoreResealing: Sendable {
    /// Replaces sealed columns, each under its own condition, in one commit; how many there were.
    func reseal(_ rows: [Resealed]) async throws(StoreError) -> Int
}

/// Names of settings that a store's keepers write.
package enum StoreSetting {
    /// `check/N`: a known value sealed with seal key N; proves that a key file fits.
    package static let check = "check/"
    /// `holder/OWNER`: which seal keys a relay holds and uses.
    package static let holder = "holder/"
    /// In which form addresses of registrations stand; 2: by instance (decision 0107).
    package static let form = "addresses/form"
    /// `rotation/N`: a pass has found nothing that is not sealed with key N.
    package static let rotation = "rotation/"
    /// This store has been, or is being, copied to another one, which has the same id as `copy/from`.
    package static let copiedTo = "copy/to"
    /// This store is being filled from another one.
    package static let filledFrom = "copy/from"
    /// This store was filled from another one, whole.
    package static let filled = "copy/filled"
}
