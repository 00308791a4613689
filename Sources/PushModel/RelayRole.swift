/// Something worth counting that a role saw. Static text only, so that it can smuggle no value.
package struct NoteCode: Sendable, Hashable, CustomStringConvertible {
    package let text: String
    package init(_ text: StaticString) { self.text = "\(text)" }
    package var description: String { text }
}

/// How the first attempt at a push went, as a reply plan sees it.
package enum FirstOutcome: Sendable, Hashable {
    /// The push service's first answer.
    case known(OutcomeKind)
    /// No answer by the deadline, or the lane is halted or too far behind to wait for.
    case pending
    /// No app serves the bundle: the push was dropped and counted.
    case dropped
}

/// When the peer hears back, and what.
package enum ReplyPlan<Reply: Sendable>: Sendable {
    /// As soon as the commit stands.
    case now(Reply)
    /// After first attempts, or at the deadline; one outcome for each push, in order.
    case afterFirstAttempt(deadline: Duration, @Sendable ([FirstOutcome]) -> Reply)
}

/// What a request costs its origin beside pushes, in pushes of its pace.
package struct OriginCharge: Sendable {
    /// As ``Push/origin``.
    package var origin: Secret
    package var units: Int

    package init(of origin: Secret, units: Int) {
        self.origin = origin
        self.units = units
    }
}

/// What a role makes of one request: everything that follows from it, nothing done yet.
package struct Verdict<Reply: Sendable, Failure: PushError>: Sendable {
    package var pushes: [Push]
    /// Made in the pushes' commit, all or none.
    package var changes: [Change]
    /// Changes that stand each page for itself, made one page after the other before all the rest, so that
    /// others' commits come between. One that is refused ends it: those before it stay.
    package var pages: [[Change]] = []
    /// Look-ups and records that the origin pays for like pushes of the least urgent kind; `nil`: none.
    package var charge: OriginCharge?
    package var reply: ReplyPlan<Reply>
    /// What to say when the change at that index, of its page or of ``changes``, did not meet its condition.
    package var refusal: (@Sendable (Int) -> Failure)?
    package var notes: [NoteCode]
    /// Pushes a minute of this origin, where an operator gave it a quota of its own; 0: no limit; `nil`: the
    /// instance's.
    package var quota: Int?

    package init(
        pushes: [Push] = [], changes: [Change] = [], reply: ReplyPlan<Reply>,
        refusal: (@Sendable (Int) -> Failure)? = nil, notes: [NoteCode] = [], quota: Int? = nil
    ) {
        self.pushes = pushes
        self.changes = changes
        self.reply = reply
        self.refusal = refusal
        self.notes = notes
        self.quota = quota
    }
}

/// What a role makes of an inbound. Its type, and nothing else, says under which custody its pushes stand:
/// `Verdict` goes to the durable intake alone, ``VolatileVerdict`` to the volatile one (decision 0018).
package protocol RoleVerdict: Sendable {
    static var custody: Custody { get }
}

extension Verdict: RoleVerdict {
    package static var custody: Custody { .durable }
}

/// The relay's side of one protocol. Pure but for its ports; never sends, never writes.
package protocol RelayRole: Sendable {
    /// Parsed and bounded, not yet believed.
    associatedtype Inbound: Sendable
    /// `Never` where the protocol is silent.
    associatedtype Reply: Sendable
    associatedtype Failure: PushError
    associatedtype Judged: RoleVerdict

    /// Rows of the outcome table that this protocol reads differently (decision 0048); `nil`: as it stands.
    static func override(_ answer: Answer) -> Outcome?
    func receive(_ inbound: Inbound) async throws(Failure) -> Judged
}

extension RelayRole {
    package static var custody: Custody { Judged.custody }
}
