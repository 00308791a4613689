/// A record as an engine sees it: digests and sealed bytes.
package struct StoredRecord: Sendable, Hashable {
    package var key: Digest16
    package var space: String
    package var owner: Digest16?
    package var address: Digest16?
    package var version: UInt64
    package var state: Record.State
    package var touchedAt: UnixTime
    package var expiresAt: UnixTime
    package var revision: UInt64
    package var body: [UInt8]

    package init(
        key: Digest16, space: String, owner: Digest16?, address: Digest16?, version: UInt64,
        state: Record.State,
        touchedAt: UnixTime, expiresAt: UnixTime, revision: UInt64, body: [UInt8]
    ) {
        self.key = key
        self.space = space
        self.owner = owner
        self.address = address
        self.version = version
        self.state = state
        self.touchedAt = touchedAt
        self.expiresAt = expiresAt
        self.revision = revision
        self.body = body
    }
}

package enum StoredChange: Sendable, Hashable {
    case put(StoredRecord, if: Condition)
    case expire(Digest16, at: UnixTime, if: Condition)
    case delete(Digest16, if: Condition)
    /// Deletes all records that name one of these in their `address`: what went with a registration.
    case deleteBeside([Digest16])
}

package enum StoredIndex: Sendable, Hashable {
    case space(String)
    case owner(Digest16)
    case address(Digest16)
    /// As ``RecordIndex/expired(owner:by:)``: by `version`, above the one that a page begins after.
    case expired(owner: Digest16, by: UnixTime)
}

extension StoredRecord {
    /// Behind what a page of the index goes on that ends with this record.
    package func place(in index: StoredIndex) -> UInt64 {
        switch index {
        case .space, .owner, .address: revision
        case .expired: version
        }
    }
}

/// A push as an engine sees it. Everything but `sealed` is a clear column.
package struct StoredPush: Sendable, Hashable {
    /// The engine's handle; 0 before the engine has written it.
    package var row: Int64
    package var id: PushID
    package var lane: String
    package var pushClass: PushClass
    package var origin: Digest16
    package var record: Digest16?
    package var touchedAt: UnixTime
    /// The address that the record named when the push was made; `nil`: none, or unknown.
    package var address: Digest16?
    package var notBefore: UnixTime
    package var custodyEnds: UnixTime
    /// ``Attempts/stored``.
    package var attempt: Int
    package var epoch: Int64
    package var parked: Bool
    package var mark: Digest16?
    package var sealed: [UInt8]

    package init(
        row: Int64, id: PushID, lane: String, pushClass: PushClass, origin: Digest16, record: Digest16?,
        touchedAt: UnixTime, address: Digest16? = nil, notBefore: UnixTime, custodyEnds: UnixTime,
        attempt: Int, epoch: Int64, parked: Bool, mark: Digest16?, sealed: [UInt8]
    ) {
        self.row = row
        self.id = id
        self.lane = lane
        self.pushClass = pushClass
        self.origin = origin
        self.record = record
        self.touchedAt = touchedAt
        self.address = address
        self.notBefore = notBefore
        self.custodyEnds = custodyEnds
        self.attempt = attempt
        self.epoch = epoch
        self.parked = parked
        self.mark = mark
        self.sealed = sealed
    }
}

extension StoredPush {
    /// Whether what stands under its record's key is still the registration that it was made from.
    package func stands(by record: StoredRecord?) -> Bool {
        stands(record?.state == .live, record?.address)
    }

    /// - Parameter named: which address the record names.
    package func stands(_ isLive: Bool, _ named: Digest16?) -> Bool {
        isLive && (address == nil || address == named)
    }
}

package enum StoredAdmission: Sendable, Hashable {
    case owed(row: Int64, epoch: Int64)
    case repeated(of: PushID, first: OutcomeKind?)
    /// Not written: the registration that it was made from has ended since, or has another address.
    case gone
}

package enum StoredAccepted: Sendable, Hashable {
    case committed([StoredAdmission])
    case refused(index: Int)
}

package struct StoredSettlement: Sendable, Hashable {
    package var row: Int64
    package var id: PushID
    package var epoch: Int64
    package var mark: Digest16?
    package var step: Settlement.Step
    package var first: OutcomeKind?

    package init(
        row: Int64, id: PushID, epoch: Int64, mark: Digest16?, step: Settlement.Step, first: OutcomeKind?
    ) {
        self.row = row
        self.id = id
        self.epoch = epoch
        self.mark = mark
        self.step = step
        self.first = first
    }
}

/// A store: one schema of protocol-blind rows. Memory, SQLite and PostgreSQL follow it, and one conformance
/// suite (`PushTesting`) judges all three. `AtRest` alone asks an engine, by one port for each kind of row.
///
/// Every write is one commit that is on stable storage when the call returns; engines join waiting calls into
/// one commit. `accept` makes its changes all or none; the changes of `settle` stand each for itself.
package typealias Engine = StoredRecords & StoredOutbox & StoredOwners & StoredSettings

/// Records as rows. Asked by the sealed registry.
package protocol StoredRecords: Sendable {
    /// - Parameter often: so many of the first keys are of records that nearly every call asks for: an engine
    ///   may keep their rows in memory for as long as nobody can have changed them.
    func find(_ keys: [Digest16], often: Int, now: UnixTime) async throws(StoreError) -> [StoredRecord?]
    func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord]
    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied
    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int
    func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int
    /// One answer for each owner, in order.
    ///
    /// - Parameter weighing: whether bytes are counted too. Without, they are 0, and an engine reads an index
    ///   and no record: for 300,000 records 10 MiB, where it otherwise reads 1.3 GiB.
    func tally(_ owners: [Digest16], weighing: Bool) async throws(StoreError) -> [RecordTally]
    /// Sets records aside that do not open, each if it is still as it was read. For every look-up and
    /// condition such a record does not exist; a put replaces it, and everything that deletes records deletes
    /// it. A record that the engine itself cannot read counts as absent at once, and the engine sets it
    /// aside.
    ///
    /// - Returns: how many stand aside now.
    func setRecordsAside(_ records: [SeenRecord]) async throws(StoreError) -> Int
}

extension StoredRecords {
    package func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        try await find(keys, often: 0, now: now)
    }
}

/// Owed pushes as rows, from their acceptance to their end. Asked by the sealed outbox.
///
/// Marks: `accept` writes a push's mark with it. While a mark is held (ten minutes, or as long as the push is
/// owed) a push with the same mark in a *later* call is not written; the answer names the first one. Settling
/// writes the first outcome into the mark; withdrawing releases it. Two items of one call never share a mark.
/// Marks age by the engine's own clock, because those of its callers may differ.
///
/// Claiming raises a push's epoch: a settlement that was written before, and is tried again because its
/// answer was lost, then changes nothing.
///
/// When a record is deleted, expires, or is replaced by a tombstone or by a record with another address, the
/// pushes that are owed to it end in the same commit, whichever process owes them; their marks are released.
/// A push of a registration that no longer exists is not written either.
package protocol StoredOutbox: Sendable {
    /// Reports pushes of this owner that ended in this way and count as in memory; those that another owner's
    /// commit ended are reported with the next renewal at the latest.
    var ended: EndedPushes { get }
    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted
    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool]
    /// Takes pushes of this owner that do not open out of every claim, with their marks, so that a repeat is
    /// a new push. They are owed under ``Aside`` of their lane, for anyone who looks into the store, until
    /// their custody ends. False where the push was no longer ours at that epoch; `step` does not matter.
    func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool]
    /// Parked pushes of this owner, and perhaps of dead ones before they are taken over; a living owner keeps
    /// its own. By class, the most urgent first, and none but these.
    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush]
    /// The earliest moment at which `claim` has something.
    func nextDue(_ lane: String) async throws(StoreError) -> UnixTime?
    /// Removes at most `limit` pushes whose custody has ended, of those that this owner has parked and of
    /// dead owners'; how many of each lane.
    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int]
}

extension StoredOutbox {
    /// Of all classes.
    package func claim(_ lane: String, due: UnixTime, limit: Int) async throws(StoreError) -> [StoredPush] {
        try await claim(lane, due: due, limit: limit, classes: .urgent ... .background)
    }
}

/// Who is alive by the engine's clock, and who owns each push. Asked by the sealed outbox.
package protocol StoredOwners: Sendable {
    /// The engine's own clock plus `span` becomes this owner's `alive_until`.
    func renew(for span: Duration) async throws(StoreError)
    /// Makes this owner a member of these groups, and of no others, until `span` from now by the engine's own
    /// clock; who was a living member stays one since when it joined.
    ///
    /// - Returns: all members of these groups: the living, and those that ended at most
    ///   ``Member/remembered`` ago.
    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member]
    /// Takes over at most `limit` pushes that dead owners left in these lanes; how many. Those of other lanes
    /// wait for a process that has the lane. An engine for one process takes those of all lanes, because
    /// nobody else will come for them. It is asked every few seconds: where there is nothing it costs one
    /// short read.
    func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int
    /// Lets at most `limit` of this owner's parked pushes of all *other* lanes go, with a new epoch: they
    /// count as a dead owner's from then on, so that a process which has the lane finds them. How many; an
    /// engine for one process has nobody to leave them to, and answers 0.
    func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int
    /// Parks at most `limit` of this owner's pushes that stand as in memory, with a new epoch; how many. For
    /// an owner that has none in memory.
    func reclaim(limit: Int) async throws(StoreError) -> Int
    /// What the whole store owes, and how many pushes of each lane `claim` could bring, be they due or not.
    func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int])
}

/// What a store knows beside its rows. Asked when the sealed store is opened, by its doubted clock, and by
/// the rotation of seal keys.
package protocol StoredSettings: Sendable {
    /// The store's own last time: how late it was when a process last worked on it; it only rises. `nil` for
    /// a store that nobody has worked on; one of an earlier version answers by its rows.
    func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime?
    /// Small named values outside every space: the sealed check value, the mark of a key rotation.
    func setting(_ name: String) async throws(StoreError) -> [UInt8]?
    /// Writes a named value if there is none yet; the value that stands afterwards.
    func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8]
}

/// What is done with a store's own last time.
package enum LastTime: Sendable, Hashable {
    case look
    /// Unless it stands later.
    case raise(UnixTime)
    /// Set by an operator, whatever the stored time is.
    case set(UnixTime)

    /// The setting that holds it: milliseconds, eight bytes, big-endian, so that they compare as numbers.
    package static let setting = "clock/last"

    package static func bytes(_ time: UnixTime) -> [UInt8] {
        withUnsafeBytes(of: max(0, time.milliseconds).bigEndian) { Array($0) }
    }

    /// `nil` for what is no time.
    package static func time(_ bytes: [UInt8]) -> UnixTime? {
        guard bytes.count == 8 else { return nil }
        let time = bytes.reduce(0) { $0 << 8 | Int64($1) }
        return time < 0 ? nil : UnixTime(milliseconds: time)
    }

    /// No row of ours is older: an older time was not written by a clock.
    package static let earliest = UnixTime(seconds: 1_577_836_800)
}

/// The lane or space of pushes and records that cannot be read: no other lane's or space's name begins like
/// this.
package enum Aside {
    package static let prefix = "aside:"
    package static func holds(_ text: String) -> Bool { text.hasPrefix(prefix) }
    package static func text(_ lane: String) -> String { prefix + lane }
    /// The lane that it is aside of; `nil` for a lane.
    package static func lane(_ text: String) -> String? {
        text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }
}

/// What an operator may ask an engine about single owed pushes, beside the ways of ``Engine``.
package protocol OwedLookup: Sendable {
    /// The row of an owed push, without its sealed column; `nil` when none is found.
    func owed(_ id: PushID) async throws(StoreError) -> StoredPush?
    /// The push that has been owed longest.
    func oldest() async throws(StoreError) -> PushID?
}

/// Whether a commit waits for the disk.
package enum Synchronous: Sendable {
    /// What the relay promises.
    case full
    /// Loses accepted pushes in a power cut. Only for showing that the power-cut test can fail.
    case dangerNormal
}
