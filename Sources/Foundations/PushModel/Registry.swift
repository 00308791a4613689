/// What every store says when it cannot do what it was asked.
package struct StoreError: PushError {
    package enum Code: String, Sendable, CaseIterable {
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
    }

    package let code: Code
    package init(_ code: Code) { self.code = code }

    package var codeText: String { code.rawValue }
    package var blame: Blame {
        switch code {
        case .full, .unavailable, .uncertain: .ourselves
        case .noSpace, .readOnly, .corrupt, .wrongKey, .inUse, .newerSchema, .halfMigrated, .denied,
            .notDurable, .moved, .unfinished:
            .operator
        }
    }
    package var retry: RetryAdvice {
        switch code {
        case .full, .unavailable, .noSpace, .readOnly, .uncertain, .inUse: .later
        case .corrupt, .wrongKey, .newerSchema, .halfMigrated, .denied, .notDurable, .moved, .unfinished:
            .never
        }
    }
    package var sentence: String {
        switch code {
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

/// Records by name. Above the engines; below the roles.
package protocol Registry: Sendable {
    /// One answer for each key, in order; `nil` where there is none (a record past `expiresAt` is none).
    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?]
    /// Records of an index in order of revision, after the given revision; at most `limit`.
    func page(_ index: RecordIndex, after revision: UInt64, limit: Int) async throws(StoreError) -> [Record]
    /// Makes all the changes or none, durably.
    func apply(_ changes: [Change]) async throws(StoreError) -> Applied
    /// Removes at most `limit` records whose `expiresAt` is before the moment; how many went.
    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int
    /// Removes at most `limit` records of an owner, expired ones and tombstones too; how many went.
    func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int
    /// How many records each of these owners has, and what they take, expired ones and tombstones too; one
    /// answer for each, in order. It walks over all of them: for a bound that is looked at now and then.
    func tally(_ owners: [RecordKey]) async throws(StoreError) -> [RecordTally]
    /// The clock that whatever is destroyed by time goes by, where the store keeps one.
    var clock: DoubtedClock? { get }
}

/// Pushes, marks and changes that become owed in one commit.
package struct Acceptance: Sendable {
    package struct Item: Sendable {
        package var push: Push
        package var lane: LaneName
        /// True when the lane's memory has no room: the push waits in the store for `claim`.
        package var parked: Bool
        /// Not before then may it leave; `nil`: at once. One that waits is parked.
        package var notBefore: UnixTime?

        package init(push: Push, lane: LaneName, parked: Bool, notBefore: UnixTime? = nil) {
            precondition(parked || notBefore == nil, "what may not leave yet waits in the store")
            self.push = push
            self.lane = lane
            self.parked = parked
            self.notBefore = notBefore
        }
    }

    package var instance: ConfiguredName
    package var items: [Item]
    /// All or none, together with the items.
    package var changes: [Change]

    package init(instance: ConfiguredName, items: [Item], changes: [Change]) {
        self.instance = instance
        self.items = items
        self.changes = changes
    }
}

/// What became of an acceptance.
package enum Accepted: Sendable {
    /// One admission for each item, in order.
    case committed([Admission])
    /// A change did not meet its condition: nothing was written.
    case refused(index: Int)
}

package enum Admission: Sendable {
    case owed(OwedPush)
    /// The same address and ciphertext came from the same origin within ten minutes; the push of that time,
    /// and its first outcome if there was one already.
    case repeated(of: PushID, first: OutcomeKind?)
}

/// One owed push's next state. Names row, id and epoch, and changes nothing when they do not fit.
package struct Settlement: Sendable {
    package enum Step: Sendable, Hashable {
        /// The push has ended: the row goes; the mark stays with the first outcome.
        case settle
        /// Another attempt not before then. `parked`: it leaves memory until claimed.
        case retry(notBefore: UnixTime, attempt: Int, lane: LaneName, parked: Bool)
        /// It leaves memory for want of room.
        case park
        /// It ends, and its mark too, so that a repeat is a new push (decision 0003).
        case withdraw
    }

    package var push: OwedPush
    package var step: Step
    /// The first outcome, when this step is the first to know it.
    package var first: OutcomeKind?

    package init(_ push: OwedPush, _ step: Step, first: OutcomeKind?) {
        precondition(push.custody == .durable, "a volatile push has no row to settle")
        self.push = push
        self.step = step
        self.first = first
    }
}

/// What stands in the outbox at start, and what a scrape shows.
package struct OutboxLoad: Sendable, Hashable {
    package var rows: Int
    package var bytes: Int
    /// Parked pushes that this process may claim, by lane.
    package var lanes: [LaneName: Int]
    /// Pushes of this process that do not open and are sent by nobody.
    package var aside: Int

    package init(rows: Int, bytes: Int, lanes: [LaneName: Int], aside: Int = 0) {
        self.rows = rows
        self.bytes = bytes
        self.lanes = lanes
        self.aside = aside
    }
}

/// Custody: what is accepted is owed until it is settled. Above the engines; below `Delivery`.
package protocol Outbox: Sendable {
    /// The keyed digest that owed pushes of this origin will carry. Computed, not looked up.
    func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16
    /// Writes pushes, marks and changes in one commit that is on stable storage when this returns.
    func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted
    /// Settles pushes and applies feedback (each change on its own) in one commit. False where the push was
    /// no longer ours at that epoch.
    func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool]
    /// Takes parked pushes of a lane that are due into memory: by class, then round robin over origins.
    func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush]
    /// The earliest `notBefore` of a lane's parked pushes that are ours or a dead process's.
    func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime?
    /// Removes at most `limit` parked pushes whose custody has ended; how many of each lane.
    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int]
    /// Declares this process alive for `span` from the engine's clock.
    func renew(for span: Duration) async throws(StoreError)
    /// Takes over at most `limit` pushes that dead owners left in these lanes: ours now, epoch raised,
    /// parked. How many.
    func takeOver(_ lanes: [LaneName], limit: Int) async throws(StoreError) -> Int
    /// Lets at most `limit` of our parked pushes of all other lanes go, for a process that has their lane.
    /// How many.
    func letGo(besides lanes: [LaneName], limit: Int) async throws(StoreError) -> Int
    /// Makes this process a member of these groups, and of no others, for `span` by the engine's clock; all
    /// members of them.
    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member]
    /// Parks at most `limit` of our pushes that stand as in memory; how many. For a process that has handed
    /// everything back, after an answer of the store was lost.
    func reclaim(limit: Int) async throws(StoreError) -> Int
    func load() async throws(StoreError) -> OutboxLoad
}

extension Outbox {
    /// Of all classes.
    package func claim(_ lane: LaneName, due: UnixTime, limit: Int) async throws(StoreError) -> [OwedPush] {
        try await claim(lane, due: due, limit: limit, classes: .urgent ... .background)
    }
}
