import CoreMetrics
import NIOCore
import PushModel
import Synchronization

/// A router in force, with the counters of its faces, and the proxies that are believed with it.
final class InstalledRouter: Sendable {
    let router: HTTPRouter
    let proxies: TrustedProxies
    let entries: [FaceEntry]

    init(
        _ router: HTTPRouter, _ proxies: TrustedProxies, listener: ConfiguredName,
        _ factory: any MetricsFactory
    ) {
        self.router = router
        self.proxies = proxies
        entries = router.faces.map { FaceEntry($0, listener: listener, factory) }
    }
}

/// A complete request on its way to its face. By reference, because it changes hands several times.
final class IngressJob: Sendable {
    let entry: FaceEntry
    let inbound: HTTPInbound
    let reply: IngressReply

    init(entry: FaceEntry, inbound: HTTPInbound, reply: IngressReply) {
        self.entry = entry
        self.inbound = inbound
        self.reply = reply
    }
}

/// The way back to the connection; the serial number tells whether it still waits for this answer.
struct IngressReply: Sendable {
    let loop: any EventLoop
    let connection: NIOLoopBound<HTTPConnection>
    let serial: UInt64

    func send(_ answer: HTTPOutbound) {
        if loop.inEventLoop {
            connection.value.answer(answer, serial: serial)
        } else {
            loop.execute { connection.value.answer(answer, serial: serial) }
        }
    }
}

/// What all connections of a listener share: limits, totals, the router, the mailboxes of the consumers.
final class ListenerCore: Sendable {
    let limits: IngressLimits
    let world: World
    let metrics: IngressMetrics
    /// One for each event loop, whose consumer runs on that loop.
    let mailboxes: [ObjectIdentifier: Mailbox<IngressJob>]
    private let loadChanged: (@Sendable () -> Void)?
    private let routers: Mutex<InstalledRouter>
    private let clientKey: UInt64
    private let shares: Mutex<Shares>
    /// Looked at and changed within `shares`.
    private let standing = Mutex(StandingBodies())
    let failures: FailedCalls
    let strains: LastStrain
    /// When the listener looks at deadlines: connections wake it, and calls that are turned away.
    let looks: RegularLooks
    private let inFlight = Atomic<Int>(0)
    private let draining = Atomic<Bool>(false)
    private let unread = Atomic<Int>(0)

    init(
        limits: IngressLimits, world: World, metrics: IngressMetrics, router: InstalledRouter,
        loops: [any EventLoop], loadChanged: (@Sendable () -> Void)?
    ) {
        self.limits = limits
        self.world = world
        self.metrics = metrics
        self.loadChanged = loadChanged
        mailboxes = Dictionary(
            loops.map { (ObjectIdentifier($0), Mailbox(capacity: limits.inFlight)) }, uniquingKeysWith: { $1 }
        )
        routers = Mutex(router)
        clientKey = world.random()
        shares = Mutex(Shares(limits))
        failures = FailedCalls(perMinute: IngressLimits.failedPerMinute, world: world)
        strains = LastStrain(lasts: limits.strainLasts, began: world.instant())
        looks = RegularLooks(world)
    }

    var router: InstalledRouter { routers.withLock { $0 } }
    func install(_ router: InstalledRouter) { routers.withLock { $0 = router } }

    var isDraining: Bool { draining.load(ordering: .acquiring) }
    var openConnections: Int { shares.withLock(\.connections) }
    var requestsInFlight: Int { inFlight.load(ordering: .relaxed) }
    var bufferedBytes: Int { shares.withLock(\.bytes) }

    // MARK: Totals

    /// Counts a connection in; see ``Shares/connect(_:)``.
    func connectionOpened(_ client: ClientKey?) -> Shares.Grant {
        let (grant, count) = shares.withLock { ($0.connect(client), $0.connections) }
        metrics.connections.set(count)
        looks.wake()
        switch grant {
        case .granted: break
        case .clientFull: metrics.count(.clientShare)
        case .full: strained(.connections)
        }
        loadChanged?()
        return grant
    }

    /// The last connection of a draining listener ends its consumers.
    ///
    /// - Parameter client: where its share was granted.
    func connectionClosed(_ client: ClientKey?) {
        let count = shares.withLock { shares in
            shares.disconnect(client)
            return shares.connections
        }
        metrics.connections.set(count)
        loadChanged?()
        if count == 0, isDraining { closeMailboxes() }
    }

    /// Requests whose client a trusted proxy has named in a way that cannot be read.
    var unreadClients: Int { unread.load(ordering: .relaxed) }

    func forwardedUnread() {
        unread.add(1, ordering: .relaxed)
        metrics.forwardedUnread.increment()
    }

    /// A call was refused because a common resource has run out.
    func strained(_ strain: ListenerStrain) {
        strains.note(strain, at: world.instant())
        looks.wake()
    }

    /// How long there is nothing to look at, if nothing comes; `nil`: there is something. A request whose
    /// connection has gone is still served.
    func rest(at now: ContinuousClock.Instant) -> Duration? {
        guard openConnections == 0, mailboxes.values.allSatisfy(\.isAtRest) else { return nil }
        let untilChange = strains.nextChange.map { max(.zero, $0 - now) }
        return min(limits.restSweep, untilChange ?? limits.restSweep)
    }

    func beginDrain() {
        draining.store(true, ordering: .releasing)
        if openConnections == 0 { closeMailboxes() }
    }

    func closeMailboxes() { for mailbox in mailboxes.values { mailbox.close() } }

    /// Hands a request over; false when the limit of requests under way is reached.
    ///
    /// - Parameter mailbox: its loop's.
    func dispatch(_ job: IngressJob, to mailbox: Mailbox<IngressJob>?) -> Bool {
        guard inFlight.add(1, ordering: .relaxed).newValue <= limits.inFlight, mailbox?.offer(job) == true
        else {
            requestEnded()
            strained(.requests)
            return false
        }
        loadChanged?()
        return true
    }

    func requestEnded() {
        inFlight.subtract(1, ordering: .relaxed)
        loadChanged?()
    }

    /// Takes room for the next bytes of a body; see ``Shares/take(_:behind:of:)``. If there is none, stalled
    /// bodies are dropped (``IngressLimits/stall``).
    ///
    /// - Parameters:
    ///   - place: the body's among those that are more than tiny; set when it becomes one of them.
    ///   - isProven: whether its sender has shown a credential that was good lately.
    ///   - cut: ends the request when it has made way.
    func reserve(
        _ bytes: Int, behind received: Int, of client: ClientKey, place: inout StandingBodies.ID?,
        isProven: () -> Bool, cut: () -> @Sendable () -> Void
    ) -> Shares.Grant {
        let isNew = place == nil && received + bytes > IngressLimits.unjudgedBodyBytes
        // Nearly every body; no other is dropped for it. A request for room that is refused has taken
        // nothing.
        if place == nil, !isNew,
            shares.withLock({ $0.take(bytes, behind: received, of: client) }) == .granted
        {
            loadChanged?()
            return .granted
        }
        let now = world.instant()
        let body =
            isNew
            ? StandingBodies.Body(
                client: client, isProven: isProven(), received: received + bytes, markedAt: now,
                markedBytes: received + bytes, cut: cut())
            : nil
        let own = place
        let (grant, made, cuts) = shares.withLock { shares in
            standing.withLock { standing -> (Shares.Grant, StandingBodies.ID?, [StandingBodies.Body]) in
                // It was dropped, and does not know it yet.
                if let own, !standing.contains(own) { return (.full, own, []) }
                var cuts: [StandingBodies.Body] = []
                var grant = shares.take(bytes, behind: received, of: client)
                // Ends, because each round takes a body out.
                while grant == .full,
                    let stalled = standing.takeStalled(
                        for: limits.stall, but: own, isLarge: shares.lacksLarge(bytes), now: now)
                {
                    shares.release(stalled.received, of: stalled.client)
                    cuts.append(stalled)
                    grant = shares.take(bytes, behind: received, of: client)
                }
                guard grant == .granted else { return (grant, own, cuts) }
                if let own { standing.grow(own, by: bytes, now: now) }
                return (grant, body.map { standing.add($0) } ?? own, cuts)
            }
        }
        place = made
        for stalled in cuts { stalled.cut() }
        if grant == .full { strained(.bodies) }
        if grant == .granted { loadChanged?() }
        return grant
    }

    /// The body is whole, or given up.
    ///
    /// - Returns: false: it was dropped, and its room is given back.
    func leave(_ place: StandingBodies.ID?) -> Bool {
        guard let place else { return true }
        return standing.withLock { $0.remove(place) != nil }
    }

    func release(_ bytes: Int, of client: ClientKey) {
        guard bytes > 0 else { return }
        shares.withLock { $0.release(bytes, of: client) }
        loadChanged?()
    }

    /// The client for rate limits: its IPv4 address, or its /64.
    func key(of address: IPAddress) -> ClientKey {
        var hasher = Hasher()
        hasher.combine(clientKey)
        hasher.combine(address.high)
        if address.v4 != nil { hasher.combine(address.low) }
        return ClientKey(UInt64(bitPattern: Int64(hasher.finalize())))
    }
}
