/// Something worth counting that a role saw. Static text only, so that it cannot carry a value.
package struct NoteCode: Sendable, Hashable, CustomStringConvertible {
    package let text: String
    package init(_ text: StaticString) { self.text = "\(text)" }
    /// - Parameter word: of a closed list.
    package init(word: some RawRepresentable<String> & CaseIterable) { text = word.rawValue }
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

    /// The reply says that such a push failed and may be sent again.
    package var isFailure: Bool {
        switch self {
        case .known(.retry), .known(.rejected), .known(.misconfigured), .dropped: true
        case .known(.accepted), .known(.unregistered), .pending: false
        }
    }
}

/// When the peer hears back, and what.
package enum ReplyTiming<Reply: Sendable>: Sendable {
    /// As soon as the commit stands. By reference: so a verdict's size does not depend on its reply's, and
    /// who takes one in without knowing its protocol need not look that size up (decision 0073).
    indirect case now(Reply)
    /// After first attempts, or at the deadline; one outcome for each push, in order.
    case afterFirstAttempt(deadline: Duration, @Sendable ([FirstOutcome]) -> Reply)
    /// The same, for peers that send again what they hear has failed: a push whose first answer is a retry, a
    /// rejection or a fault of configuration is withdrawn, and its mark released, before the reply leaves. So
    /// such an outcome means that nothing of the push is left; what goes on is `.pending`, and so is what may
    /// have arrived without our hearing of it. With the first withdrawal, or before a reply that tells of
    /// another failure leaves, `undoing` is made: changes after which the call is taken when it comes again
    /// byte for byte (decision 0070).
    case withdrawingAfterFirstAttempt(
        deadline: Duration, undoing: [Change], @Sendable ([FirstOutcome]) -> Reply)
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

/// Whose turns in their lanes a call's pushes take (decision 0103). Whoever holds a turn is also who makes
/// room in a full lane, and who witnesses a halt.
///
/// Something that a stranger gets for free, such as a key pair, holds no turn: each of a thousand key pairs
/// would have a turn before anybody else's push. Below the holder, each phone has its own turns in any case.
package enum Turns: Sendable {
    /// The origin's (``Push/origin``): an operator lets each of them in.
    case byOrigin
    /// The owner's of this credential, which the operator gave out.
    case byCredential(Secret)
    /// The client's that called; the phone's where nobody is known to have called.
    case byClient
    /// The phone's: nobody behind the push can be held responsible.
    case byAddress
}

/// What a role makes of one request: everything that follows from it, nothing done yet.
///
/// Its optionals have their long names, as those of ``Record`` and ``APNsMessage`` have: a property of the
/// short form begins as `nil`, and a value in which something is set twice is copied whole once it is made.
package struct Verdict<Reply: Sendable, Failure: PushError>: Sendable {
    package var pushes: [Push]
    /// Made in the pushes' commit, all or none.
    package var changes: [Change]
    /// Changes that stand each page for itself, made one page after the other before all the rest, so that
    /// others' commits come between. One that is refused ends it: those before it stay.
    package var pages: [[Change]] = []
    /// Look-ups and records that the origin pays for like pushes of the least urgent kind; `nil`: none.
    package var charge: Optional<OriginCharge>
    package var reply: ReplyTiming<Reply>
    /// What to say when the change at that index, of its page or of ``changes``, did not meet its condition.
    package var refusal: Optional<@Sendable (Int) -> Failure>
    /// How to answer when the pushes at those indices, in ascending order, were not taken, because their
    /// origin is too far ahead of its pace, and the others were: outcomes of first attempts are those of the
    /// others. `nil`: one such push refuses the call. A call of which nothing could be taken is refused in
    /// any case.
    package var withheld: Optional<@Sendable ([Int]) -> ReplyTiming<Reply>>
    package var notes: [NoteCode]
    /// Pushes a minute of this origin, where an operator gave it a quota of its own; 0: no limit; `nil`: the
    /// instance's.
    package var quota: Optional<Int>
    /// Whose turns the pushes take.
    package var turns: Turns
    /// Told the pushes' ids before the reply is made; `nil`: nobody asked.
    package var references: Optional<PushReferences>

    package init(
        pushes: [Push] = [], changes: [Change] = [], reply: ReplyTiming<Reply>,
        refusal: (@Sendable (Int) -> Failure)? = nil, notes: [NoteCode] = [], quota: Int? = nil,
        charge: OriginCharge? = nil, turns: Turns = .byAddress, references: PushReferences? = nil
    ) {
        self.pushes = pushes
        self.changes = changes
        self.charge = charge
        self.reply = reply
        self.refusal = refusal
        withheld = nil
        self.notes = notes
        self.quota = quota
        self.turns = turns
        self.references = references
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

/// Units a minute that callers without an origin may use for one kind of work.
package struct Allowance: Sendable, Hashable {
    /// What it is for: one word of the protocol's.
    package let name: String
    /// Of each payer; divided among the relays on one store.
    package let perMinute: Int

    package init(_ name: StaticString, perMinute: Int) {
        self.name = "\(name)"
        self.perMinute = perMinute
    }
}

/// Whose part of an allowance a call uses.
package enum Payer: Sendable, Hashable {
    case client(ClientKey)
    /// A peer that has proved who it is, by its id.
    case peer(Digest16)
    /// All callers together.
    case everybody
}

/// What a call costs before it is looked at.
package struct Toll: Sendable, Hashable {
    package let allowance: Allowance
    package let payer: Payer
    package let units: Int

    package init(_ allowance: Allowance, of payer: Payer, units: Int = 1) {
        self.allowance = allowance
        self.payer = payer
        self.units = units
    }
}

/// Refusals of a protocol that depend on the moment and not on the call.
package protocol DeferringError: PushError {
    /// The relay cannot take the call now.
    ///
    /// - Parameter retryAfter: when it may; `nil`: it cannot be told.
    static func overloaded(retryAfter: Duration?) -> Self
    /// The caller has used up its share.
    static func rateLimited(retryAfter: Duration) -> Self
    var isOverloaded: Bool { get }
}

/// Codes among which are those two.
package protocol DeferringCode: Sendable, Equatable {
    static var overloaded: Self { get }
    static var rateLimited: Self { get }
}

/// Such refusals of a protocol whose error is a code and, beside it, how long to wait.
package protocol DeferringCodedError: DeferringError {
    associatedtype Code: DeferringCode

    var code: Code { get }
    var retryAfter: Duration? { get set }
    init(_ code: Code)
}

extension DeferringCodedError {
    package static func overloaded(retryAfter: Duration?) -> Self {
        var error = Self(.overloaded)
        error.retryAfter = retryAfter
        return error
    }

    package static func rateLimited(retryAfter: Duration) -> Self {
        var error = Self(.rateLimited)
        error.retryAfter = retryAfter
        return error
    }

    package var isOverloaded: Bool { code == .overloaded }

    /// For a header `Retry-After`: whole seconds, rounded up, at least 1.
    package var retryAfterSeconds: Int64 {
        max(1, ((retryAfter ?? .seconds(1)).wholeMilliseconds + 999) / 1_000)
    }
}

/// A role whose pushes are kept, and whose peers are answered.
package protocol AnsweringRole: RelayRole where Judged == Verdict<Reply, Failure>, Failure: DeferringError {
    /// Whether the call may cost its caller something. Asked first, because the answer needs no wait; if it
    /// is no, the toll is not asked for.
    func mayCost(_ inbound: Inbound) -> Bool
    /// What the call costs its caller, who has shown no credentials; `nil`: nothing.
    func toll(of inbound: Inbound, from client: ClientKey) async throws(Failure) -> Toll?
    /// Whether peers make this call only once, so that it waits when the store is out for a moment.
    static func isAskedOnce(_ inbound: Inbound) -> Bool
}

extension AnsweringRole {
    package func mayCost(_ inbound: Inbound) -> Bool { true }
}

/// A role that may keep nothing, and answers nobody.
package protocol SilentRole: RelayRole where Judged == VolatileVerdict<Held>, Reply == Never {
    /// What the role remembers of an inbound so that it is not taken twice.
    associatedtype Held: Sendable

    /// There was room for none of the inbound's pushes: the role is to take it when it comes again.
    func release(_ held: Held)
}

extension RelayRole {
    package static var custody: Custody { Judged.custody }
}
