package import PushModel

/// Whether a lane may send (decisions 0048 and 0079). A value: answers in, state out.
///
/// Two things halt a lane: faults of its credential, when several in a row say so and the credential has not
/// proved good between them, since one alone may be a stray; and target faults, only when its last answers
/// hold enough *distinct* addresses with them, from enough origins that were lately served, and no
/// acceptance, since a topic or a token that a client chose must never stop an app.
package struct Breaker: Sendable {
    package enum State: Sendable, Hashable { case open, halted(Cause) }
    package enum Cause: Sendable, Hashable { case credential, targets }

    package enum Change: Sendable, Hashable {
        case none, halted(Cause)
        /// A push was accepted, or refused by a word that only a good credential is given.
        case resumed
        /// Another origin came, so what halted the lane is no longer a reason.
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
    /// Faults of the credential since it last proved good here,
    private var faults = 0
    /// and since it did anywhere, as far as this lane has heard.
    private var faultsSinceProof = 0
    private var proofs = 0
    private var origins: RecentOrigins
    /// Who was accepted here, and so can speak for the app.
    package private(set) var accepted: LateAcceptances
    private let answers: Int
    private let addresses: Int
    private let witnesses: Int
    private let fewFaults: Int
    private let manyFaults: Int

    /// - Parameters:
    ///   - answers: how far it looks back.
    ///   - addresses: distinct ones with target faults that halt.
    ///   - witnesses: origins that these come from, where the app has as many; and of those that were lately
    ///     accepted as many, where there are.
    ///   - memory: how long an origin counts as one that the app has, and an acceptance as late.
    ///   - counted: origins of which it knows only that they were accepted, in each half of that.
    ///   - faults: of the credential in a row that halt; and as many as halt although it proves good in other
    ///     lanes.
    package init(
        answers: Int, addresses: Int, witnesses: Int, memory: Duration,
        counted: Int = LateAcceptances.mostCounted, faults: (few: Int, many: Int) = (3, 20)
    ) {
        (fewFaults, manyFaults) = faults
        self.answers = answers
        self.addresses = addresses
        self.witnesses = witnesses
        origins = RecentOrigins(most: witnesses, span: memory)
        accepted = LateAcceptances(span: memory, counted: counted)
    }

    /// Answers that blame the target. They count before a protocol's override.
    package static func isTargetFault(_ answer: Answer) -> Bool {
        if case .misconfigured(.target) = answer.outcome { return true }
        return answer.reason.meaning.contains(.blamesTarget)
    }

    /// Answers that blame the credential, for good or for a while.
    package static func isCredentialFault(_ answer: Answer) -> Bool {
        if case .misconfigured(.credential) = answer.outcome { return true }
        return answer.isAnswered && answer.reason.meaning.contains(.doubtsCredential)
    }

    /// Answers that only a good credential is given. A service says something about an address only to a
    /// credential that it has accepted. Without this rule, a lane that has only dead addresses left to probe
    /// with would wait for an acceptance for ever.
    package static func provesCredential(_ answer: Answer) -> Bool {
        answer.isAnswered
            && (answer.outcome.isAccepted || answer.reason.meaning.contains(.provesCredential))
    }

    /// - Parameters:
    ///   - address: any number that is the same for the same address and differs for others.
    ///   - origin: `nil` when it can be no witness.
    ///   - proofs: of the credential, in this lane and in others of its environment, so far.
    package mutating func note(
        _ answer: Answer, address: Int, origin: Digest16?, proofs: Int = 0, at now: ContinuousClock.Instant
    ) -> Change {
        // The app has this origin, whatever the service answered.
        if let origin, answer.isAnswered { origins.note(origin, at: now) }
        if Self.isCredentialFault(answer) { return faulted(answer, proofs) }
        // An answer that our own side made, or none at all, says nothing about the service.
        guard answer.isAnswered else { return .none }
        if Self.provesCredential(answer) { (faults, faultsSinceProof) = (0, 0) }
        if answer.outcome.isAccepted {
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
        guard isFault, state == .open, blamesTargets(at: now) else { return .none }
        state = .halted(.targets)
        sparesRegistrations = true
        return .halted(.targets)
    }

    /// A fault of the credential halts when it is one of several in a row. A fault that our own side found by
    /// asking several times is not a stray.
    private mutating func faulted(_ answer: Answer, _ proofs: Int) -> Change {
        if proofs != self.proofs { (self.proofs, faultsSinceProof) = (proofs, 0) }
        faults += 1
        faultsSinceProof += 1
        let isSure =
            answer.fate == .unprocessed || faultsSinceProof >= fewFaults || faults >= manyFaults
        guard isSure, state != .halted(.credential) else { return .none }
        state = .halted(.credential)
        return .halted(.credential)
    }

    /// An origin has a push in this lane: the app has it, whatever becomes of the push.
    package mutating func heard(of origin: Digest16, at now: ContinuousClock.Instant) -> Change {
        origins.note(origin, at: now)
        guard state == .halted(.targets), !hasEnoughWitnesses(now) else { return .none }
        state = .open
        return .reopened
    }

    /// Whether the next target fault could halt the lane, or would if nothing did yet: then the caller should
    /// first say which origins wait in it.
    package var isNearHalt: Bool { state != .halted(.targets) && recent.count + 1 >= addresses }

    /// A probe to somebody who was accepted lately was refused: the next probe goes to somebody else.
    package mutating func doubt(_ origin: Digest16) { accepted.forget(origin) }

    /// Whether the answers since the last acceptance blame as many targets, of as many witnesses, as halt a
    /// lane that is open.
    func blamesTargets(at now: ContinuousClock.Instant) -> Bool {
        hasEnoughAddresses && hasEnoughWitnesses(now)
    }

    private var hasEnoughAddresses: Bool {
        Set(recent.compactMap { $0?.address }).count >= addresses
    }

    private func hasEnoughWitnesses(_ now: ContinuousClock.Instant) -> Bool {
        let seen = Set(recent.compactMap { $0?.origin })
        guard seen.count >= min(witnesses, origins.count(at: now)) else { return false }
        // Where anybody may sign up, somebody who invents addresses invents origins too. Origins that were
        // accepted lately are real, and they are the ones that a halt would hurt.
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
