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

/// A complete request on its way to its face.
struct IngressJob: Sendable {
    let entry: FaceEntry
    let inbound: HTTPInbound
    let reply: IngressReply
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

/// What all connections of a listener share: bounds in force, totals, the router, the ways to the consumers.
final class ListenerCore: Sendable {
    let limits: IngressLimits
    let world: World
    let metrics: IngressMetrics
    /// One for each event loop, whose consumer runs on that loop.
    let mailboxes: [ObjectIdentifier: Mailbox<IngressJob>]
    private let loadChanged: (@Sendable () -> Void)?
    private let routers: Mutex<InstalledRouter>
    private let clientKey: UInt64
    private let connections = Atomic<Int>(0)
    private let inFlight = Atomic<Int>(0)
    private let buffered = Atomic<Int>(0)
    private let draining = Atomic<Bool>(false)

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
    }

    var router: InstalledRouter { routers.withLock { $0 } }
    func install(_ router: InstalledRouter) { routers.withLock { $0 = router } }

    var isDraining: Bool { draining.load(ordering: .acquiring) }
    var openConnections: Int { connections.load(ordering: .relaxed) }
    var requestsInFlight: Int { inFlight.load(ordering: .relaxed) }
    var bufferedBytes: Int { buffered.load(ordering: .relaxed) }

    // MARK: Totals

    /// Counts a connection in; false when there is no room for it. It must be counted out either way.
    func connectionOpened() -> Bool {
        let count = connections.add(1, ordering: .relaxed).newValue
        metrics.connections.set(count)
        loadChanged?()
        return count <= limits.connections
    }

    /// The last connection of a draining listener ends its consumers.
    func connectionClosed() {
        let count = connections.subtract(1, ordering: .acquiringAndReleasing).newValue
        metrics.connections.set(count)
        loadChanged?()
        if count == 0, isDraining { closeMailboxes() }
    }

    func beginDrain() {
        draining.store(true, ordering: .releasing)
        if openConnections == 0 { closeMailboxes() }
    }

    func closeMailboxes() { for mailbox in mailboxes.values { mailbox.close() } }

    /// Hands a request over; false when as many as may be are on their way.
    func dispatch(_ job: IngressJob) -> Bool {
        guard inFlight.add(1, ordering: .relaxed).newValue <= limits.inFlight,
            mailboxes[ObjectIdentifier(job.reply.loop)]?.offer(job) == true
        else {
            requestEnded()
            return false
        }
        loadChanged?()
        return true
    }

    func requestEnded() {
        inFlight.subtract(1, ordering: .relaxed)
        loadChanged?()
    }

    /// Takes room for bytes of a body; false, and nothing taken, when memory would not stay flat.
    func reserve(_ bytes: Int) -> Bool {
        guard buffered.add(bytes, ordering: .relaxed).newValue <= limits.bufferedBytes else {
            release(bytes)
            return false
        }
        loadChanged?()
        return true
    }

    func release(_ bytes: Int) {
        buffered.subtract(bytes, ordering: .relaxed)
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
