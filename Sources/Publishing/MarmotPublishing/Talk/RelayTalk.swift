import MarmotPush

/// One request at one relay, from the open connection to the relay's answer. A value: the relay's messages go
/// in, messages to send come out.
///
/// Relays refuse in several ways (docs/conformance/marmot.md): by OK or CLOSED; by a NOTICE alone; and those
/// that challenge on connecting by a NOTICE or by nothing, until who asks has proven a key.
struct RelayTalk: Sendable {
    enum Wish: Sendable {
        /// An event is to be taken; by its id.
        case publish([UInt8])
        /// Stored events are to be said; by the name of the request.
        case read(subscription: String)
    }

    enum Event: Sendable {
        case opened
        case said(NostrMessage.FromRelay)
        /// Nothing came, though ``isPressed``.
        case quiet
        /// The relay has closed, or says too much that nobody asked for.
        case ended
    }

    enum Action: Sendable, Hashable {
        /// Say the wish: EVENT or REQ.
        case ask
        case prove(challenge: String)
        case end(Verdict)
    }

    enum Verdict: Sendable, Hashable {
        /// The event was taken, or had been; everything stored was said.
        case granted
        case refused(NostrReason?)
        case closed
    }

    private enum Proof { case none, wanted, sent([UInt8]?), answered }

    private let wish: Wish
    private var challenge: String?
    private var proof = Proof.none
    /// A NOTICE came for an answer. The outer value: whether one did.
    private var notice: NostrReason??
    /// How often the wish was said and not answered: a relay that is slower than the grace refuses what was
    /// said before the proof when the proof, or the wish once more, is already on its way.
    private var unanswered = 0

    init(_ wish: Wish) { self.wish = wish }

    /// Whether ``PublishingLimits/grace`` without a word counts as ``Event/quiet``; else the next word is
    /// waited for as long as there is time.
    var isPressed: Bool {
        if notice != nil { return true }
        switch proof {
        case .wanted, .sent: return true
        case .none: return challenge != nil
        case .answered: return false
        }
    }

    /// The proof that ``Action/prove(challenge:)`` asked for was sent, under this id.
    mutating func proved(_ id: [UInt8]) { proof = .sent(id) }

    mutating func take(_ event: Event) -> Action? {
        switch event {
        case .opened: return ask()
        case .said(.challenge(let text)):
            challenge = text
            if case .wanted = proof { return prove() }
            return nil
        case .said(.ok(let id, let isAccepted, let text)):
            if case .sent(let own) = proof, own == id { return proofAnswered(isAccepted) }
            guard case .publish(id) = wish else { return nil }
            let reason = NostrReason(text: text)
            // nostr-relay says false of what it has (docs/conformance/marmot.md).
            return isAccepted || reason == .duplicate ? .end(.granted) : refused(reason)
        case .said(.endOfStored(let name)):
            guard case .read(name) = wish else { return nil }
            return .end(.granted)
        case .said(.closed(let name, let text)):
            guard case .read(name) = wish else { return nil }
            return refused(NostrReason(text: text))
        case .said(.notice(let text)): return noticed(NostrReason(text: text))
        case .said(.event): return nil
        case .quiet: return silence()
        case .ended: return .end(notice.map { .refused($0) } ?? .closed)
        }
    }

    /// A refusal because of missing authentication is answered once: with a fresh key, which says nothing
    /// about us.
    private mutating func refused(_ reason: NostrReason?) -> Action? {
        let wantsProof = reason == .authRequired || (reason == .restricted && challenge != nil)
        if wantsProof, takesAsEarlier() { return nil }
        guard case .none = proof, wantsProof else { return .end(.refused(reason)) }
        unanswered -= 1
        return prove()
    }

    private mutating func noticed(_ reason: NostrReason?) -> Action? {
        if takesAsEarlier() { return nil }
        if case .none = proof, challenge != nil {
            unanswered -= 1
            return prove()
        }
        notice = .some(reason)
        return nil
    }

    /// Whether a refusal is the answer to what was said before the proof; it is then counted as that.
    private mutating func takesAsEarlier() -> Bool {
        switch proof {
        case .none, .wanted: return false
        case .sent: guard unanswered > 0 else { return false }
        case .answered: guard unanswered > 1 else { return false }
        }
        unanswered -= 1
        return true
    }

    private mutating func ask() -> Action {
        unanswered += 1
        return .ask
    }

    private mutating func prove() -> Action? {
        guard let challenge else {
            // Some send the challenge after the refusal.
            proof = .wanted
            return nil
        }
        proof = .sent(nil)
        notice = nil
        return .prove(challenge: challenge)
    }

    private mutating func proofAnswered(_ isAccepted: Bool) -> Action {
        proof = .answered
        return isAccepted ? ask() : .end(.refused(.authRequired))
    }

    private mutating func silence() -> Action? {
        if let notice { return .end(.refused(notice)) }
        switch proof {
        case .wanted: return .end(.refused(.authRequired))
        case .sent:
            // nostr-relay takes a proof without a word; the next answer shows it.
            proof = .answered
            return ask()
        case .none: return challenge == nil ? nil : prove()
        case .answered: return nil
        }
    }
}
