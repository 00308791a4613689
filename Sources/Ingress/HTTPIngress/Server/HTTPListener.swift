package import CoreMetrics
import EventLoops
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import PushModel
import ServiceLifecycle
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One named listener: an address, perhaps TLS, and the faces it serves.
///
/// `open` takes the address, or sockets that listen already; `run` answers until a graceful stop has finished
/// what was asked, or until cancellation cuts everything. `install` and `reloadTLS` apply to the next request
/// and the next connection; nothing in progress is dropped.
///
/// A stop ends in this order: no more is accepted; what was accepted is served, each connection to one more
/// answer if it asks for one; then our ends are closed, and what the client still sends is read until it ends
/// too. Sockets that were handed over stay open, and connections that wait in them wait for the next process.
package final class HTTPListener: Service, Sendable {
    package struct Address: Sendable {
        package var host: String
        /// 0: any free one.
        package var port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    private enum State {
        case closed
        case open([any Channel], port: Int)
    }

    package let name: ConfiguredName
    private let address: Address
    /// Listening sockets that another process holds too. Never closed here: this process's own descriptors of
    /// them end with it.
    private let inherited: [CInt]
    private let tls: Mutex<TLSFiles?>
    private let factory: any MetricsFactory
    private let journal: Journal
    private let group: any EventLoopGroup
    private let core: ListenerCore
    private let registers: [ObjectIdentifier: LoopRegister]
    private let context: Mutex<NIOSSLContext?>
    private let state = Mutex(State.closed)
    private let drainEnds = Mutex<ContinuousClock.Instant?>(nil)
    private let strained: @Sendable (Set<ListenerStrain>) -> Void

    /// - Parameter inherited: sockets that listen already, in place of the address.
    /// - Parameter strained: called when the reason for which the listener refuses calls changes; with
    ///   nothing when it has refused none for a while.
    /// - Parameter loadChanged: called behind every change of `load`, on any thread.
    /// - Throws: `.tlsUnusable` when the files cannot be used.
    package init(
        _ name: ConfiguredName, at address: Address, inherited: [CInt] = [], tls: TLSFiles? = nil,
        proxies: TrustedProxies = TrustedProxies(),
        router: HTTPRouter, limits: IngressLimits = IngressLimits(), group: any EventLoopGroup, world: World,
        journal: Journal, metrics: any MetricsFactory,
        strained: @escaping @Sendable (Set<ListenerStrain>) -> Void = { _ in },
        loadChanged: (@Sendable () -> Void)? = nil
    ) throws(IngressError) {
        self.strained = strained
        self.name = name
        self.address = address
        self.inherited = inherited
        self.tls = Mutex(tls)
        self.journal = journal
        self.group = group
        factory = metrics
        let secured = try tls?.context(of: name)
        context = Mutex(secured)
        core = ListenerCore(
            limits: limits, world: world, metrics: IngressMetrics(listener: name, metrics),
            router: InstalledRouter(router, proxies, listener: name, metrics),
            loops: Array(group.makeIterator()), loadChanged: loadChanged)
        var registers: [ObjectIdentifier: LoopRegister] = [:]
        for loop in group.makeIterator() { registers[ObjectIdentifier(loop)] = LoopRegister(loop) }
        self.registers = registers
    }

    /// Connections that stand, requests between last byte and answer, bytes of bodies in memory.
    package var load: (connections: Int, requests: Int, bytes: Int) {
        (core.openConnections, core.requestsInFlight, core.bufferedBytes)
    }

    /// Requests since the start whose client a trusted proxy has named in a way that cannot be read. They
    /// count as the proxy's own.
    package var unreadClients: Int { core.unreadClients }

    /// Whether a stop has reached the connections.
    package var isDraining: Bool { core.isDraining }

    /// Puts another router in force for every request whose head has not been read yet.
    ///
    /// - Parameter proxies: who is believed from then on; `nil`: as before.
    package func install(_ router: HTTPRouter, proxies: TrustedProxies? = nil) {
        core.install(InstalledRouter(router, proxies ?? core.router.proxies, listener: name, factory))
    }

    /// Reads certificate and key again, for new connections. On a fault the old ones stay in force.
    package func reloadTLS() throws(IngressError) { try prepareTLS(tls.withLock { $0 })() }

    /// Reads certificate and key, of other files perhaps, and leaves what is in force alone.
    ///
    /// - Parameter files: `nil`: no TLS any more.
    /// - Returns: puts them in force, for new connections; cannot fail.
    /// - Throws: `.tlsUnusable`.
    package func prepareTLS(_ files: TLSFiles?) throws(IngressError) -> @Sendable () -> Void {
        let fresh = try files?.context(of: name)
        return { [self] in
            tls.withLock { $0 = files }
            context.withLock { $0 = fresh }
        }
    }

    /// Takes the address and begins to accept. Later calls return the same port.
    ///
    /// - Returns: the port that was taken.
    /// - Throws: `.bindFailed`.
    package func open() async throws(IngressError) -> Int {
        if case .open(_, let port) = state.withLock({ $0 }) { return port }
        var bound: [any Channel] = []
        do {
            if inherited.isEmpty {
                bound.append(try await bootstrap.bind(host: address.host, port: address.port).get())
            }
            for descriptor in inherited { bound.append(try await adopt(descriptor)) }
        } catch {
            for channel in bound { channel.close(promise: nil) }
            throw IngressError(.bindFailed, [name])
        }
        let port = bound.first?.localAddress?.port ?? address.port
        state.withLock { $0 = .open(bound, port: port) }
        journal.note("listener opened", [.listener: name, .port: port])
        return port
    }

    /// Accepts from a socket that listens already, by a descriptor of our own: closing it leaves the socket
    /// listening.
    private func adopt(_ descriptor: CInt) async throws -> any Channel {
        let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else { throw IngressError(.bindFailed, [name]) }
        let channel = try await bootstrap.withBoundSocket(own).get()
        // The library has asked for a queue of 128 connections, whatever it was before.
        listen(descriptor, IngressLimits.backlog)
        return channel
    }

    package func run() async throws {
        _ = try await open()
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await withDiscardingTaskGroup { timers in
                    timers.addTask { await self.sweepRegularly() }
                    await self.serveAll()
                    timers.cancelAll()
                }
            } onGracefulShutdown: {
                self.beginDrain()
            }
        } onCancel: {
            self.beginDrain()
            self.cutAll()
            self.core.closeMailboxes()
        }
        journal.note("listener closed", [.listener: name])
    }

    // MARK: Serving

    /// A request is served on the loop of its connection.
    private func serveAll() async {
        await withDiscardingTaskGroup { consumers in
            for register in registers.values {
                guard let mailbox = core.mailboxes[ObjectIdentifier(register.loop)] else { continue }
                let executor = LoopExecutor(register.loop)
                consumers.addTask(executorPreference: executor) {
                    await mailbox.serveAll { await self.serve($0) }
                }
            }
        }
    }

    private func serve(_ job: IngressJob) async {
        let answer = await job.entry.face.respond(to: job.inbound)
        core.requestEnded()
        job.reply.send(answer)
    }

    /// Looks at the deadlines of all connections, and cuts them when a drain has taken too long. While there
    /// are none, it rests (decision 0145).
    private func sweepRegularly() async {
        while true {
            let isStopping = drainEnds.withLock { $0 != nil }
            let span = isStopping ? min(core.limits.drainSweep, core.limits.sweep) : core.limits.sweep
            await core.looks.next(every: span) {
                self.drainEnds.withLock { $0 == nil } ? self.core.rest(at: self.core.world.instant()) : nil
            }
            // By then everything has been served or cut.
            guard !Task.isCancelled else { return }
            for mailbox in core.mailboxes.values { mailbox.endUnneeded() }
            let now = core.world.instant()
            if let change = core.strains.change(at: now) { strained(change) }
            if let end = drainEnds.withLock({ $0 }), now >= end {
                cutAll()
            } else {
                for register in registers.values { register.visitAll { $0.sweep(at: now) } }
            }
        }
    }

    // MARK: Stopping

    private func beginDrain() {
        let isFirst = drainEnds.withLock { end in
            defer { end = end ?? core.world.instant() + core.limits.drain }
            return end == nil
        }
        guard isFirst else { return }
        core.looks.wake()
        guard case .open(let channels, _) = state.withLock({ $0 }) else { return drainConnections() }
        let ended = channels.map { stopAccepting($0) }
        EventLoopFuture.andAllComplete(ended, on: group.any()).whenComplete { _ in self.drainConnections() }
    }

    /// Ends accepting without losing a connection that was accepted a moment ago: it is on its way from the
    /// socket's loop to its own, back, and there again, and a channel that is closed meanwhile closes it.
    private func stopAccepting(_ channel: any Channel) -> EventLoopFuture<Void> {
        let loop = channel.eventLoop
        return channel.setOption(.autoRead, value: false)
            .flatMap { self.turn(on: loop) }
            .flatMap { loop.submit {} }
            .flatMap { self.turn(on: loop) }
            .flatMap { channel.close() }
    }

    /// Waits until every loop has done what it was given before.
    private func turn(on loop: any EventLoop) -> EventLoopFuture<Void> {
        .andAllComplete(registers.values.map { $0.loop.submit {} }, on: loop)
    }

    private func drainConnections() {
        core.beginDrain()
        for register in registers.values { register.visitAll { $0.drain() } }
    }

    private func cutAll() {
        for register in registers.values { register.visitAll { $0.close() } }
    }

    // MARK: Accepting

    private var bootstrap: ServerBootstrap {
        ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: IngressLimits.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptPause(
                            isStopping: { self.drainEnds.withLock { $0 != nil } },
                            note: { self.core.strained(.descriptors) }))
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // One read for each wake-up: requests are small, and a held read must hold soon.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.furnish(channel) }
            }
    }

    private func furnish(_ channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let secured = context.withLock { $0 }
        let socket = Self.address(of: channel)
        // A proxy carries everybody's calls.
        let holder = core.router.proxies.contains(socket) ? nil : core.key(of: socket)
        let grant = core.connectionOpened(holder)
        guard grant == .granted, let register = registers[ObjectIdentifier(channel.eventLoop)] else {
            let refusal = grant == .clientFull ? IngressRefusal.clientShare : .overloaded
            try pipeline.addHandler(FullConnection(core: core, refusal, isTLS: secured != nil))
            return
        }
        if let secured { try pipeline.addHandler(NIOSSLServerHandler(context: secured)) }
        let connection = HTTPConnection(
            core: core, register: register, socket: socket, holder: holder, isTLS: secured != nil)
        var bounds = NIOHTTPDecoderLimitConfiguration()
        bounds.maxHeaderFieldSize = core.limits.headBytes
        bounds.maxHeaderListSize = core.limits.headBytes
        bounds.maxHeaderFieldCount = core.limits.headFields
        try pipeline.addHandlers([
            ByteTap(connection),
            ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: bounds)),
            connection
        ])
    }

    /// The peer's address; all zeros where the system does not know it any more.
    private static func address(of channel: any Channel) -> IPAddress {
        channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) } ?? IPAddress(high: 0, low: 0)
    }
}
