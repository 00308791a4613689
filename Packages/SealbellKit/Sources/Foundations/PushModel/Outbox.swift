/// Pushes, marks and changes that become owed in one commit.
package struct Acceptance: Sendable {
    package struct Item: Sendable {
        package var push: Push
        /// The digest of its origin, by which repeats are recognised; `nil`: not computed yet.
        package var origin: Digest16?
        /// Whose turn it takes, which owed pushes carry as ``OwedPush/origin``; `nil`: its origin's.
        package var holder: Digest16?
        package var lane: LaneName
        /// True when the lane's memory has no room: the push waits in the store for `claim`.
        package var parked: Bool
        /// It must not leave before this time; `nil`: at once. A push that waits is parked.
        package var notBefore: UnixTime?

        /// - Parameter origin: as ``CustodyTaking/digest(ofOrigin:at:)`` told it.
        package init(
            push: Push, origin: Digest16? = nil, holder: Digest16? = nil, lane: LaneName, parked: Bool,
            notBefore: UnixTime? = nil
        ) {
            precondition(parked || notBefore == nil, "what may not leave yet waits in the store")
            self.push = push
            self.origin = origin
            self.holder = holder
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
    /// The registration that it was made from has ended since, or has another address: the push is not owed.
    case gone
}

/// One owed push's next state. Names row, id and epoch, and changes nothing when they do not fit.
///
/// A class, because on its way to the store it is in several lists, each of which would copy it.
package final class Settlement: Sendable {
    package enum Step: Sendable, Hashable {
        /// The push has ended: the row goes; the mark stays with the first outcome.
        case settle
        /// Another attempt, not before that time. `attempt`: as the row keeps it (``Attempts``). `parked`: it
        /// leaves memory until claimed.
        case retry(notBefore: UnixTime, attempt: Int, lane: LaneName, parked: Bool)
        /// It leaves memory because there is no room.
        case park
        /// It ends, and its mark too, so that a repeat is a new push (decision 0003).
        case withdraw
    }

    package let push: OwedPush
    package let step: Step
    /// The first outcome, when this step is the first to know it.
    package let first: OutcomeKind?

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
///
/// The wiring has all of it. Every part of delivery is given the port that it works by.
package typealias Outbox = CustodyTaking & LaneClaims & Settling & LeaseRenewal & Enrolment & Ownership

/// Where pushes come into custody. Asked by the intake.
///
/// What is accepted is on stable storage before the peer is answered.
package protocol CustodyTaking: Sendable {
    /// The keyed digest that stands for an origin, or for what else may hold turns. Computed, not looked up.
    func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16
    /// The id under which the push of that row goes out. Computed, not looked up.
    func reference(of id: PushID) -> PushID
    /// Writes pushes, marks and changes in one commit that is on stable storage when this returns.
    func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted
}

/// A lane's parked pushes, on their way into its memory. Asked by lanes.
package protocol LaneClaims: Sendable {
    /// Takes parked pushes of a lane that are due into memory: by class, then in turns over their holders
    /// (``OwedPush/origin``).
    func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush]
    /// The earliest `notBefore` of a lane's parked pushes that are ours or a dead process's.
    func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime?
    /// Told of pushes that may stand in lanes' memory, and have ended with their registrations.
    var ended: EndedPushes { get }
}

extension LaneClaims {
    /// Of all classes.
    package func claim(_ lane: LaneName, due: UnixTime, limit: Int) async throws(StoreError) -> [OwedPush] {
        try await claim(lane, due: due, limit: limit, classes: .urgent ... .background)
    }
}

/// The results of attempts. Called by the settler, batch by batch.
package protocol Settling: Sendable {
    /// Settles pushes and applies feedback (each change on its own) in one commit. False where the push was
    /// no longer ours at that epoch.
    func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool]
}

/// This process's lease on what it owes. Renewed by `Lease`; as long as it stands, nobody else takes a push
/// of ours.
package protocol LeaseRenewal: Sendable {
    /// Declares this process alive for `span` from the engine's clock.
    func renew(for span: Duration) async throws(StoreError)
}

/// The other processes on this store. Asked by `Membership`, with each renewal of the lease.
package protocol Enrolment: Sendable {
    /// Makes this process a member of these groups, and of no others, for `span` by the engine's clock; all
    /// members of them.
    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member]
}

/// Which owed pushes belong to this process: takes over those of dead processes, and releases those of lanes
/// that we do not have. Asked by the looks and sweeps of `DeliveryService`, and by `Reclaim`.
///
/// Each call is bounded; a caller with more to do asks again.
package protocol Ownership: Sendable {
    /// Takes over at most `limit` pushes that dead owners left in these lanes: ours now, epoch raised,
    /// parked. How many.
    func takeOver(_ lanes: [LaneName], limit: Int) async throws(StoreError) -> Int
    /// Lets at most `limit` of our parked pushes of all other lanes go, for a process that has their lane.
    /// How many.
    func letGo(besides lanes: [LaneName], limit: Int) async throws(StoreError) -> Int
    /// Parks at most `limit` of our pushes that stand as in memory; how many. For a process that has handed
    /// everything back, after an answer of the store was lost.
    func reclaim(limit: Int) async throws(StoreError) -> Int
    /// Removes at most `limit` parked pushes whose custody has ended; how many of each lane.
    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int]
    /// What the whole store owes, and what of it this process may claim.
    func load() async throws(StoreError) -> OutboxLoad
}
