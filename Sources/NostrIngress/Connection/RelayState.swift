import Delivery
package import MarmotPush
import PushModel
package import WebSocket

/// What comes before a relay has said that its stored events have ended, and what after.
package enum EventStanding: Sendable, Hashable { case stored, live }

/// What becomes of stored events (fact sheet §5.1).
package enum NostrBacklog: String, Sendable, Hashable, CaseIterable {
    /// None is asked for, and none is taken: a hint that came while the server was away is lost on purpose.
    case live
    /// They are taken, and the role drops what is older than its grace.
    case grace
}

/// One inbox relay: events in, actions out. Whoever drives it carries the actions out and says what came of
/// them; the machine itself touches neither socket nor clock.
package struct RelayState: Sendable {
    package enum Event: Sendable {
        case start
        case connected
        /// Connecting failed, or the connection ended; `nil`: in good order.
        case ended(WebSocketError.Code?)
        case said(NostrMessage.FromRelay)
        /// Something that is no message.
        case babble
        /// Events of ours are about to be sent; their answers are to be expected.
        case authenticating([[UInt8]])
        case publishing([[UInt8]])
        /// Our relay list is another now.
        case listChanged
        /// Time has passed.
        case tick
    }

    package enum Action: Sendable {
        case dial
        case authenticate(challenge: String)
        case subscribe(name: String)
        case unsubscribe(name: String)
        case publishList
        case deliver(NostrEvent, EventStanding)
        case hangUp
        case note(RelayNote)
    }

    enum Timer: Hashable { case dial, greeting, authentication, subscription, endOfStored, listAnswer }

    /// What is known of one connection.
    struct Session {
        var challenge: String?
        var challenges = 0
        /// Ids of authentications that await an answer.
        var proofs: Set<[UInt8]> = []
        var isProven = false
        /// The subscription in force, or asked for.
        var subscription: String?
        var requests = 0
        var hasEnded = false
        /// When the subscription was asked for.
        var askedAt: ContinuousClock.Instant?
        var liveSince: ContinuousClock.Instant?
        var lists: Set<[UInt8]> = []
        var listNeedsProof = false
        var strays = 0
    }

    let limits: NostrLimits
    private let backlog: NostrBacklog
    /// The hex of our keys.
    private let keys: Set<String>
    private let random: @Sendable () -> UInt64
    /// Whether the relay's document says that it asks for authentication.
    package var asksForProof = false

    private(set) var session: Session?
    private(set) var timers: [Timer: ContinuousClock.Instant] = [:]
    private var connections = 0
    private var failures = 0
    private var refusals = 0

    package init(
        keys: [String], backlog: NostrBacklog, limits: NostrLimits, random: @escaping @Sendable () -> UInt64
    ) {
        self.keys = Set(keys)
        self.backlog = backlog
        self.limits = limits
        self.random = random
    }

    /// Whether the answer to an authentication is being waited for.
    private var isProving: Bool { timers[.authentication] != nil }

    /// Whether the subscription is in force.
    package var isListening: Bool { session?.liveSince != nil }

    package mutating func take(_ event: Event, at now: ContinuousClock.Instant) -> [Action] {
        switch event {
        case .start: return [.dial]
        case .connected: return connected(now)
        case .ended(let code): return ended(code, now)
        case .said(let message): return session == nil ? [] : said(message, now)
        case .babble: return stray(.malformed)
        case .authenticating(let ids):
            session?.proofs = Set(ids)
            timers[.authentication] = now + limits.authentication
            return []
        case .publishing(let ids):
            session?.lists = Set(ids)
            timers[.listAnswer] = now + limits.listAnswer
            return []
        case .listChanged: return session?.subscription == nil ? [] : [.publishList]
        case .tick: return due(now)
        }
    }

    // MARK: Coming and going

    private mutating func connected(_ now: ContinuousClock.Instant) -> [Action] {
        connections += 1
        session = Session()
        refusals = 0
        timers = [.greeting: now + (asksForProof ? limits.announcedGreeting : limits.greeting)]
        return [.note(.connected)]
    }

    private mutating func ended(_ code: WebSocketError.Code?, _ now: ContinuousClock.Instant) -> [Action] {
        if let since = session?.liveSince, now - since >= limits.health { failures = 0 }
        failures += 1
        let stood = session != nil
        session = nil
        timers = [.dial: now + wait(failures)]
        return [.note(stood ? .disconnected(code) : .unreachable(code))]
    }

    private func wait(_ attempt: Int) -> Duration {
        limits.backoff.delay(afterAttempt: attempt, asked: nil, random: random())
    }

    private mutating func due(_ now: ContinuousClock.Instant) -> [Action] {
        var actions: [Action] = []
        for timer in timers.filter({ $0.value <= now }).map(\.key) {
            timers[timer] = nil
            switch timer {
            case .dial: actions.append(.dial)
            case .greeting, .subscription: actions += subscribe(now)
            case .authentication:
                actions.append(.note(.proofUnanswered))
                // Some relays take a proof and never say so, and pass over what was asked before it. A late
                // answer is still one: what was asked for in between was perhaps refused.
                if session?.subscription == nil || session?.hasEnded == false {
                    let isUnanswered = session?.lists.isEmpty == false
                    session?.listNeedsProof = isUnanswered
                    actions += subscribe(now)
                }
            case .endOfStored:
                actions.append(.note(.endWithheld))
                storedEnded(now)
            case .listAnswer:
                if session?.lists.isEmpty == false { actions.append(.note(.listUnanswered)) }
                session?.lists = []
            }
        }
        return actions
    }

    // MARK: The subscription

    /// Asks anew under a name that this connection has not had, and publishes the list with it.
    private mutating func subscribe(_ now: ContinuousClock.Instant) -> [Action] {
        guard var session else { return [] }
        var actions: [Action] = []
        if let old = session.subscription { actions.append(.unsubscribe(name: old)) }
        session.requests += 1
        let name = "\(connections)-\(session.requests)"
        session.subscription = name
        session.hasEnded = false
        session.askedAt = now
        timers[.subscription] = nil
        timers[.greeting] = nil
        timers[.endOfStored] = now + limits.endOfStored
        actions.append(.subscribe(name: name))
        let publishes = session.requests == 1 || session.listNeedsProof
        session.listNeedsProof = false
        self.session = session
        return publishes ? actions + [.publishList] : actions
    }

    private mutating func storedEnded(_ now: ContinuousClock.Instant) {
        timers[.endOfStored] = nil
        session?.hasEnded = true
        if session?.liveSince == nil { session?.liveSince = now }
    }

    private mutating func closed(_ text: String, _ now: ContinuousClock.Instant) -> [Action] {
        session?.subscription = nil
        session?.liveSince = nil
        timers[.endOfStored] = nil
        let reason = NostrReason(text: text)
        let mayProve = session?.isProven == false
        if reason == .authRequired || reason == .restricted, mayProve, !isProving,
            let challenge = session?.challenge
        {
            return [.note(.closed(reason))] + prove(challenge)
        }
        if reason == .restricted || reason == .blocked {
            timers[.subscription] = now + limits.refusalRest
            return [.note(.refusedForGood)]
        }
        refusals += 1
        timers[.subscription] = now + wait(refusals)
        return [.note(.closed(reason))]
    }

    // MARK: What the relay says

    private mutating func said(
        _ message: NostrMessage.FromRelay, _ now: ContinuousClock.Instant
    ) -> [Action] {
        switch message {
        case .event(let name, let event): return received(event, under: name, now)
        case .ok(let id, let isAccepted, let text): return answered(id, isAccepted, text, now)
        case .endOfStored(let name):
            guard name == session?.subscription else { return [] }
            guard session?.hasEnded == false else { return [] }
            storedEnded(now)
            return [.note(.listening)]
        case .closed(let name, let text):
            return name == session?.subscription ? closed(text, now) : []
        case .notice: return [.note(.notice)] + (countsAsStray() ? [.hangUp] : [])
        case .challenge(let text): return challenged(text)
        }
    }

    private mutating func received(
        _ event: NostrEvent, under name: String, _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard let session, name == session.subscription else {
            // What was under way for a subscription of before is no lie.
            return isOutdated(name) ? [.note(.outdated)] : stray(.strangeSubscription)
        }
        guard event.kind == NostrKind.giftWrap,
            event.tags.contains(where: { $0.count > 1 && $0[0] == "p" && keys.contains($0[1]) })
        else { return stray(.wrongFilter) }
        if session.hasEnded { return [.deliver(event, .live)] }
        // A relay that is still at it withholds nothing: the rest of a long past must not count as live.
        if let asked = session.askedAt {
            timers[.endOfStored] = min(now + limits.endOfStored, asked + limits.storedEvents)
        }
        return backlog == .grace ? [.deliver(event, .stored)] : [.note(.beforeEnd)]
    }

    private func isOutdated(_ name: String) -> Bool {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, Int(parts[0]) == connections, let number = Int(parts[1]) else { return false }
        return (1..<(session?.requests ?? 1)).contains(number)
    }

    private mutating func answered(
        _ id: [UInt8], _ isAccepted: Bool, _ text: String, _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard var session else { return [] }
        let reason = NostrReason(text: text)
        if session.proofs.remove(id) != nil {
            if isAccepted { session.isProven = true }
            self.session = session
            let note: [Action] = [.note(isAccepted ? .proven : .proofRefused)]
            guard session.proofs.isEmpty else { return note }
            timers[.authentication] = nil
            // Relays close or pass over what was asked before, and show more to who has proven himself.
            return note + (session.isProven || session.subscription == nil ? subscribe(now) : [])
        }
        guard session.lists.remove(id) != nil else { return stray(.strangeAnswer) }
        if isAccepted || reason == .duplicate {
            self.session = session
            return [.note(.listAccepted)]
        }
        if reason == .authRequired, !session.isProven {
            session.listNeedsProof = true
            self.session = session
            guard !isProving, let challenge = session.challenge else { return [] }
            return prove(challenge)
        }
        self.session = session
        return [.note(.listRejected(reason))]
    }

    private mutating func challenged(_ text: String) -> [Action] {
        guard session?.challenge != text else { return [] }
        session?.challenge = text
        session?.isProven = false
        return prove(text)
    }

    private mutating func prove(_ challenge: String) -> [Action] {
        session?.challenges += 1
        guard let count = session?.challenges, count <= limits.challenges else {
            return stray(.tooManyChallenges)
        }
        timers[.greeting] = nil
        return [.authenticate(challenge: challenge)]
    }

    private mutating func stray(_ note: RelayNote) -> [Action] {
        [.note(note)] + (countsAsStray() ? [.hangUp] : [])
    }

    private mutating func countsAsStray() -> Bool {
        session?.strays += 1
        return (session?.strays ?? 0) > limits.strays
    }
}
