import Delivery
package import MarmotPush
import PushModel
package import WebSocket

/// One inbox relay: events in, actions out. Its driver carries the actions out and reports their results; the
/// machine itself touches neither socket nor clock.
package struct RelayState: Sendable {
    package enum Event: Sendable {
        case start
        case connected
        /// Connecting failed, or the connection ended; `nil`: in good order.
        case ended(WebSocketError.Code?)
        case said(NostrMessage.FromRelay)
        /// Something that is not a message.
        case babble
        /// Events of ours are about to be sent; their answers are to be expected.
        case authenticating([[UInt8]])
        case publishing([[UInt8]])
        /// A test event, published as by a stranger, did not come through the subscription, or did.
        case tested(isHeard: Bool)
        /// A PING of ours has not been answered for a while.
        case doubted
        /// Our relay list has changed.
        case listChanged
        /// Time has passed.
        case tick
    }

    package enum Action: Sendable {
        case dial
        case authenticate(challenge: String)
        /// - `takesStored`: stored events are wanted, all of them.
        case subscribe(name: String, takesStored: Bool)
        /// Stored events that are no newer than this time, beside the subscription in force.
        case subscribePage(name: String, until: Int64)
        /// Anything, to see whether the relay answers.
        case probe(name: String)
        case unsubscribe(name: String)
        case publishList
        case deliver(NostrEvent, EventSource)
        case hangUp
        case note(RelayNote)
    }

    enum Timer: Hashable { case dial, greeting, authentication, subscription, endOfStored, page, listAnswer }

    /// A request for older stored events that is under way.
    struct Page {
        let name: String
        let until: Int64
        /// The oldest that it brought.
        var oldest: Int64
    }

    /// What is known of one connection.
    struct Session {
        /// The prefix of its subscriptions' names, so that no relay can send an event under a name that it
        /// was not given.
        let prefix: String
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
        /// How long we had not been listening before; `nil`: we never had.
        var away: Duration?
        var liveSince: ContinuousClock.Instant?
        /// Stored events of the subscription in force, and the oldest of them.
        var storedCount = 0
        var oldestStored: Int64?
        var page: Page?
        var pages = 0
        /// A NOTICE came since the subscription was asked for.
        var wasNoticed = false
        /// How often a NOTICE made us subscribe again, and until when it does not.
        var noticeAsks = 0
        var noticeRestUntil: ContinuousClock.Instant?
        /// A request that only asks whether the relay answers.
        var probe: String?
        var lists: Set<[UInt8]> = []
        var listNeedsProof = false
        var strays = 0
    }

    let limits: NostrLimits
    private let backlog: NostrBacklog
    /// The hex of our keys.
    private let keys: Set<String>
    private let prefix: @Sendable () -> String
    /// Whether the relay's document says that it asks for authentication.
    package var asksForProof = false

    private(set) var session: Session?
    private(set) var timers: [Timer: ContinuousClock.Instant] = [:]
    private var pace: RelayPace
    /// The relay granted the subscription and handed out nothing, as far as the last test tells.
    private(set) var isDeaf = false
    /// When the last subscription in force ended; `nil`: there was none, or the events since then have been
    /// read.
    private var ceased: ContinuousClock.Instant?

    /// - Parameter prefix: draws the prefix of the names of one connection's subscriptions: at most 32
    ///   letters and digits that nobody can guess.
    package init(
        keys: [String], backlog: NostrBacklog, limits: NostrLimits,
        random: @escaping @Sendable () -> UInt64, prefix: @escaping @Sendable () -> String
    ) {
        self.keys = Set(keys)
        self.backlog = backlog
        self.limits = limits
        self.prefix = prefix
        pace = RelayPace(limits, random)
    }

    /// Whether the answer to an authentication is being waited for.
    private var isProving: Bool { timers[.authentication] != nil }

    /// Whether the relay has granted the subscription.
    package var isSubscribed: Bool { session?.liveSince != nil }
    /// Whether the subscription is in force.
    package var isListening: Bool { isSubscribed && !isDeaf }

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
        case .tested(let isHeard): return tested(isHeard)
        case .doubted: return probe()
        case .listChanged: return session?.subscription == nil ? [] : [.publishList]
        case .tick: return due(now)
        }
    }

    // MARK: Coming and going

    private mutating func connected(_ now: ContinuousClock.Instant) -> [Action] {
        session = Session(prefix: prefix())
        pace.connected()
        timers = [.greeting: now + (asksForProof ? limits.announcedGreeting : limits.greeting)]
        return [.note(.connected)]
    }

    private mutating func ended(_ code: WebSocketError.Code?, _ now: ContinuousClock.Instant) -> [Action] {
        let stood = session != nil
        let steadyFor = session?.liveSince.map { now - $0 }
        silenced(now)
        session = nil
        let wait = stood ? pace.afterEnd(listenedFor: steadyFor) : pace.afterFailedDial(at: now)
        timers = [.dial: now + wait]
        return [.note(stood ? .disconnected(code) : .unreachable(code))]
    }

    /// A relay that delivers nothing is disconnected, because a new connection may deliver again. Until
    /// something comes through, it counts as not listened at.
    private mutating func tested(_ isHeard: Bool) -> [Action] {
        isDeaf = !isHeard
        guard isDeaf, session != nil else { return [] }
        return [.hangUp]
    }

    /// A relay that answers no PING is asked for something else before the connection counts as dead: any
    /// answer is a sign of life.
    private mutating func probe() -> [Action] {
        guard var session, session.probe == nil else { return [] }
        session.requests += 1
        let name = Self.name(session.prefix, session.requests)
        session.probe = name
        self.session = session
        return [.probe(name: name)]
    }

    private mutating func probed() -> [Action] {
        guard let name = session?.probe else { return [] }
        session?.probe = nil
        return [.unsubscribe(name: name)]
    }

    /// The subscription is no longer in force.
    private mutating func silenced(_ now: ContinuousClock.Instant) {
        if session?.liveSince != nil { ceased = ceased ?? now }
        session?.liveSince = nil
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
                // Some relays accept an authentication without saying so, and ignore earlier requests. A late
                // answer still counts: requests in between were perhaps refused.
                if session?.subscription == nil || session?.hasEnded == false {
                    let isUnanswered = session?.lists.isEmpty == false
                    session?.listNeedsProof = isUnanswered
                    actions += subscribe(now)
                }
            case .endOfStored:
                // Some relays do not say the end of stored events. One that said something else instead has
                // refused.
                actions +=
                    session?.wasNoticed == true
                    ? closed("", now) : [.note(.endWithheld)] + storedEnded(now)
            case .page: actions += pagesEnded()
            case .listAnswer:
                if session?.lists.isEmpty == false { actions.append(.note(.listUnanswered)) }
                session?.lists = []
            }
        }
        return actions
    }

    // MARK: The subscription

    /// Subscribes again under a name that this connection has not used, and publishes the list with it.
    private mutating func subscribe(_ now: ContinuousClock.Instant) -> [Action] {
        guard var session else { return [] }
        var actions: [Action] = []
        if let page = session.page { actions.append(.unsubscribe(name: page.name)) }
        if let old = session.subscription { actions.append(.unsubscribe(name: old)) }
        (session.page, session.pages) = (nil, 0)
        (session.storedCount, session.oldestStored) = (0, nil)
        timers[.page] = nil
        // Between the end of one subscription and the beginning of the next a wrap may come.
        if session.liveSince != nil { ceased = ceased ?? now }
        session.requests += 1
        let name = Self.name(session.prefix, session.requests)
        session.subscription = name
        session.hasEnded = false
        session.wasNoticed = false
        session.askedAt = now
        session.away = ceased.map { now - $0 }
        timers[.subscription] = nil
        timers[.greeting] = nil
        timers[.endOfStored] = now + limits.endOfStored
        actions.append(.subscribe(name: name, takesStored: backlog == .grace || session.away != nil))
        let publishes = session.requests == 1 || session.listNeedsProof
        session.listNeedsProof = false
        self.session = session
        return publishes ? actions + [.publishList] : actions
    }

    /// From here on events are live. Stored events beyond one answer of the relay are asked for page by page:
    /// wraps are dated back up to two days, so missed ones may be anywhere among them.
    private mutating func storedEnded(_ now: ContinuousClock.Instant) -> [Action] {
        timers[.endOfStored] = nil
        session?.hasEnded = true
        pace.granted()
        if session?.liveSince == nil { session?.liveSince = now }
        guard let session, let oldest = session.oldestStored, session.storedCount >= limits.fullPage else {
            ceased = nil
            return []
        }
        return page(until: oldest, now)
    }

    private mutating func page(until oldest: Int64, _ now: ContinuousClock.Instant) -> [Action] {
        guard var session else { return [] }
        session.pages += 1
        session.requests += 1
        let name = Self.name(session.prefix, session.requests)
        session.page = Page(name: name, until: oldest, oldest: oldest)
        timers[.page] = now + limits.endOfStored
        self.session = session
        return [.subscribePage(name: name, until: oldest)]
    }

    private mutating func pageEnded(_ page: Page, _ now: ContinuousClock.Instant) -> [Action] {
        guard page.oldest < page.until, (session?.pages ?? 0) < limits.pages else { return pagesEnded() }
        return [.unsubscribe(name: page.name)] + self.page(until: page.oldest, now)
    }

    private mutating func pagesEnded() -> [Action] {
        timers[.page] = nil
        ceased = nil
        guard let page = session?.page else { return [] }
        session?.page = nil
        return [.unsubscribe(name: page.name)]
    }

    private mutating func closed(_ text: String, _ now: ContinuousClock.Instant) -> [Action] {
        session?.subscription = nil
        silenced(now)
        session?.page = nil
        (timers[.endOfStored], timers[.page]) = (nil, nil)
        let reason = NostrReason(text: text)
        let mayProve = session?.isProven == false
        if reason == .authRequired || reason == .restricted, mayProve, !isProving,
            let challenge = session?.challenge
        {
            return [.note(.closed(reason))] + prove(challenge)
        }
        if reason == .restricted || reason == .blocked {
            timers[.subscription] = now + pace.afterFinalRefusal()
            return [.note(.refusedForGood)]
        }
        timers[.subscription] = now + pace.afterRefusal()
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
            if name == session?.probe { return probed() }
            if let page = session?.page, name == page.name { return pageEnded(page, now) }
            guard name == session?.subscription else { return [] }
            guard session?.hasEnded == false else { return [] }
            return [.note(.listening)] + storedEnded(now)
        case .closed(let name, let text):
            if name == session?.probe { return probed() }
            if name == session?.page?.name {
                session?.page = nil
                return pagesEnded()
            }
            return name == session?.subscription ? closed(text, now) : []
        case .notice(let text):
            return [.note(.notice)] + (countsAsStray() ? [.hangUp] : noticed(text, now))
        case .challenge(let text): return challenged(text)
        }
    }

    /// A NOTICE names no request. Before the end of the stored events it may be the refusal of the
    /// subscription, and is one if it begins as a refusal does; later it may be the end of the subscription.
    /// If we subscribe again, the relay accepts or refuses.
    private mutating func noticed(_ text: String, _ now: ContinuousClock.Instant) -> [Action] {
        guard var session, session.subscription != nil else { return [] }
        guard session.hasEnded else {
            self.session?.wasNoticed = true
            switch NostrReason(text: text) {
            case .authRequired, .restricted, .blocked: return closed(text, now)
            default: return []
            }
        }
        guard session.noticeRestUntil.map({ $0 <= now }) ?? true else { return [] }
        session.noticeAsks += 1
        session.noticeRestUntil =
            now + limits.firstNoticeRest.doubled(session.noticeAsks - 1, atMost: limits.noticeRest)
        self.session = session
        return subscribe(now)
    }

    private mutating func received(
        _ event: NostrEvent, under name: String, _ now: ContinuousClock.Instant
    ) -> [Action] {
        if let probe = session?.probe, name == probe { return [] }
        guard let session, name == session.subscription || name == session.page?.name else {
            // Events that were on their way for an earlier subscription are no fault of the relay.
            return isOutdated(name) ? [.note(.outdated)] : stray(.strangeSubscription)
        }
        guard event.kind == NostrKind.giftWrap,
            event.tags.contains(where: { $0.count > 1 && $0[0] == "p" && keys.contains($0[1]) })
        else { return stray(.wrongFilter) }
        if let page = session.page, name == page.name {
            self.session?.page?.oldest = min(page.oldest, event.createdAt)
            timers[.page] = now + limits.endOfStored
            return [stored(event, session)]
        }
        if session.hasEnded {
            isDeaf = false
            return [.deliver(event, .live)]
        }
        // A relay that is still sending withholds nothing: the rest of a long past must not count as live.
        if let asked = session.askedAt {
            timers[.endOfStored] = min(now + limits.endOfStored, asked + limits.storedEvents)
        }
        if backlog == .grace || session.away != nil {
            self.session?.storedCount += 1
            self.session?.oldestStored = min(session.oldestStored ?? .max, event.createdAt)
        }
        return [stored(event, session)]
    }

    private func stored(_ event: NostrEvent, _ session: Session) -> Action {
        if backlog == .grace { return .deliver(event, .stored) }
        return session.away.map { .deliver(event, .missed($0)) } ?? .note(.beforeEnd)
    }

    private static func name(_ prefix: String, _ request: Int) -> String { "\(prefix)-\(request)" }

    /// Whether this connection asked under that name before it asked under the present one.
    private func isOutdated(_ name: String) -> Bool {
        guard let session, name.hasPrefix(session.prefix + "-") else { return false }
        guard let number = Int(name.dropFirst(session.prefix.count + 1)), number >= 1,
            name == Self.name(session.prefix, number)
        else { return false }
        return number <= session.requests
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
            // Relays close or ignore earlier subscriptions, and show more to a client that has authenticated.
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
