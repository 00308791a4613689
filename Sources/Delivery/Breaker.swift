package import PushModel

/// Whether a lane may send (decision 0048). A value: answers in, state out.
///
/// Two things halt a lane: a fault of its credential, at once and for every lane of that credential; and
/// target faults, only when its last answers hold enough *distinct* addresses with them, from enough origins
/// that were lately served, and no acceptance, since a topic or a token that a client chose must never stop
/// an app.
package struct Breaker: Sendable {
    package enum State: Sendable, Hashable { case open, halted(Cause) }
    package enum Cause: Sendable, Hashable { case credential, targets }

    package enum Change: Sendable, Hashable {
        case none, halted(Cause)
        /// A push was accepted, or refused by a word that only a good credential is given.
        case resumed
        /// Another origin came: what halted the lane is no reason any more.
        case reopened
    }

    private struct Fault: Sendable {
        let address: Int
        let origin: Digest16
    }

    package private(set) var state: State = .open
    /// From the halt until the next acceptance no registration is expired for target reasons.
    package private(set) var sparesRegistrations = false
    private var recent: [Fault?] = []
    private var next = 0
    private var origins: RecentOrigins
    /// Who was accepted here, and so can speak for the app.
    package private(set) var accepted: LateAcceptances
    private let answers: Int
    private let addresses: Int
    private let witnesses: Int

    /// - Parameters:
    ///   - answers: how far it looks back.
    ///   - addresses: distinct ones with target faults that halt.
    ///   - witnesses: origins that these come from, where the app has as many; and of those that were lately
    ///     accepted as many, where there are.
    ///   - memory: how long an origin counts as one that the app has, and an acceptance as late.
    ///   - counted: origins of which it knows only that they were accepted, in each half of that.
    package init(
        answers: Int, addresses: Int, witnesses: Int, memory: Duration,
        counted: Int = LateAcceptances.mostCounted
    ) {
        self.answers = answers
        self.addresses = addresses
        self.witnesses = witnesses
        origins = RecentOrigins(most: witnesses, span: memory)
        accepted = LateAcceptances(span: memory, counted: counted)
    }

    /// Answers that blame the target. They count before a protocol's override.
    package static func isTargetFault(_ answer: Answer) -> Bool {
        answer.reason.meaning.contains(.blamesTarget) || answer.outcome == .misconfigured(.target)
    }

    /// What a service says of an address that it knows, it says to a credential that it took: a lane of which
    /// only dead addresses are left to probe with would wait for an acceptance for ever.
    private static func provesCredential(_ answer: Answer) -> Bool {
        answer.reason.meaning.contains(.provesCredential)
    }

    /// - Parameters:
    ///   - address: any number that is the same for the same address and differs for others.
    ///   - origin: `nil` when it can be no witness.
    package mutating func note(
        _ answer: Answer, address: Int, origin: Digest16?, at now: ContinuousClock.Instant
    ) -> Change {
        // Whatever the service answered, the app has that origin.
        if let origin, answer.fate == .answered { origins.note(origin, at: now) }
        if answer.outcome == .misconfigured(.credential) {
            defer { state = .halted(.credential) }
            return state == .halted(.credential) ? .none : .halted(.credential)
        }
        // What was refused here, or never answered, is no word of the service.
        guard answer.fate == .answered else { return .none }
        if answer.outcome == .accepted {
            recent.removeAll(keepingCapacity: true)
            next = 0
            sparesRegistrations = false
            if let origin { accepted.note(origin, address, at: now) }
            defer { state = .open }
            return state == .open ? .none : .resumed
        }
        let isFault = Self.isTargetFault(answer)
        remember(isFault ? origin.map { Fault(address: address, origin: $0) } : nil)
        if state == .halted(.credential), Self.provesCredential(answer) {
            state = .open
            return .resumed
        }
        guard isFault, state == .open, hasEnoughAddresses, hasEnoughWitnesses(now) else { return .none }
        state = .halted(.targets)
        sparesRegistrations = true
        return .halted(.targets)
    }

    /// An origin has a push in this lane: the app has it, whatever becomes of the push.
    package mutating func heard(of origin: Digest16, at now: ContinuousClock.Instant) -> Change {
        origins.note(origin, at: now)
        guard state == .halted(.targets), !hasEnoughWitnesses(now) else { return .none }
        state = .open
        return .reopened
    }

    /// Whether the next target fault could halt the lane: then the caller should first say which origins
    /// wait in it.
    package var isNearHalt: Bool { state == .open && recent.count + 1 >= addresses }

    /// A probe to somebody who was lately accepted was not: the next one goes to another.
    package mutating func doubt(_ origin: Digest16) { accepted.forget(origin) }

    /// Another lane of the same credential met its fault.
    package mutating func haltForCredential() { if state == .open { state = .halted(.credential) } }
    /// Another lane of the same credential was accepted again.
    package mutating func resumeFromCredential() { if state == .halted(.credential) { state = .open } }

    private var hasEnoughAddresses: Bool {
        Set(recent.compactMap { $0?.address }).count >= addresses
    }

    private func hasEnoughWitnesses(_ now: ContinuousClock.Instant) -> Bool {
        let seen = Set(recent.compactMap { $0?.origin })
        guard seen.count >= min(witnesses, origins.count(at: now)) else { return false }
        // Anyone who makes up addresses makes up origins too, where anybody may sign up. Those that were
        // lately accepted are somebody's, and it is they who would be halted.
        return accepted.areAmong(seen, atMost: witnesses, at: now)
    }

    /// The answers since the last acceptance, at most as many as the breaker looks back over.
    private mutating func remember(_ fault: Fault?) {
        if recent.count < answers {
            recent.append(fault)
        } else {
            recent[next] = fault
            next = (next + 1) % answers
        }
    }
}
