import Dialling
package import NIOCore
import NIOSSL
package import PushModel
import Synchronization

/// The bounds of a service of many hosts, each with its reason; with several relays on one store, each one's.
package struct HTTP2PoolsOptions: Sendable {
    /// Authorities that have connections, and requests that may be under way to all of them: at some 50 kB a
    /// connection 25 MB, and at 100 ms an answer five thousand pushes a second.
    package var authorities = 512
    /// After this time without a request an authority loses its connections: the next push pays for a
    /// handshake.
    package var idleAfter: Duration = .seconds(120)
    /// How each authority's pool behaves.
    package var pool: HTTP2Options

    package init() {
        pool = HTTP2Options()
        // A few connections carry all requests under way.
        pool.maximumConnections = 2
        // The sender of a push chooses its authority, and must not delay look-ups of others.
        pool.dialling.resolver = SystemResolver.peers
    }
}

/// Connections to the many authorities that requests name, for a push service without a host of its own.
///
/// Each authority has a pool, with its own connections and windows, so that a slow or dead authority does not
/// affect others. A lane reserves leave for a request first, as it does with one ``HTTP2Pool``, and only the
/// push that it picks then says where it goes. When a new pool needs the place, the one that was not used for
/// the longest time goes.
package final class HTTP2Pools: Sendable {
    /// Leave for one request, to any authority. One object a request.
    package final class Permit: SendSlot {
        private let pools: HTTP2Pools
        private let isSpent = Atomic<Bool>(false)

        fileprivate init(_ pools: HTTP2Pools) { self.pools = pools }

        // An unused one goes back by itself.
        deinit { release() }

        package func release() { if use() { pools.giveBack() } }

        /// Whether the caller is the first to use or release it.
        fileprivate func use() -> Bool { !isSpent.exchange(true, ordering: .acquiringAndReleasing) }
    }

    /// One authority's.
    private final class Outlet: Sendable {
        let pool: HTTP2Pool
        let template: HTTP2HeaderTemplate
        let hasToGo = Bell()

        init(_ pool: HTTP2Pool, _ template: HTTP2HeaderTemplate) {
            self.pool = pool
            self.template = template
        }

        /// Until it has to go, or is cancelled; what is under way ends first.
        func run() async {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await self.pool.run() }  // Thrown only by cancellation.
                await hasToGo.wait()
                group.cancelAll()
            }
        }
    }

    private typealias State = PoolsState<Outlet, UnsafeContinuation<Bool, Never>>

    private let options: HTTP2PoolsOptions
    private let counters = HTTP2Counters()
    private let trust: NIOSSLTrustRoots
    private let tls: NIOSSLContext
    private let proxy: HTTP2Endpoint.Proxy?
    private let group: any EventLoopGroup
    private let world: World
    private let journal: Journal
    private let lane: LaneName?
    private let template: @Sendable (String) -> HTTP2HeaderTemplate
    private let state: Mutex<State>
    private let starts: AsyncStream<Outlet>
    private let start: AsyncStream<Outlet>.Continuation

    /// - Parameters:
    ///   - certificates: PEM text of the CAs to trust; `nil`: the system's.
    ///   - template: the fields that requests to an authority share; made once for each that has a pool.
    ///   - lane: named in the journal, in which no authority is.
    /// - Throws: `.badCertificateFile`.
    package init(
        certificates: [UInt8]? = nil, proxy: HTTP2Endpoint.Proxy? = nil,
        options: HTTP2PoolsOptions = HTTP2PoolsOptions(), group: any EventLoopGroup, world: World,
        journal: Journal = .silent, lane: LaneName? = nil,
        template: @escaping @Sendable (String) -> HTTP2HeaderTemplate
    ) throws(HTTP2Error) {
        self.options = options
        self.proxy = proxy
        self.group = group
        self.world = world
        self.journal = journal
        self.lane = lane
        self.template = template
        trust = try HTTP2Endpoint.trust(in: certificates)
        tls = try HTTP2Dialer.context(trust)
        state = Mutex(State(authorities: options.authorities, idleAfter: options.idleAfter))
        // A new pool is started at once, so that there are never more than there are places.
        (starts, start) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// Keeps connections until cancelled; then lets what is in flight finish within the request deadline.
    package func run() async throws {
        await withDiscardingTaskGroup { outlets in
            outlets.addTask { await self.sweepRegularly() }
            for await outlet in starts { outlets.addTask { await outlet.run() } }
            let (waiters, made) = state.withLock { ($0.stop(), $0.pools) }
            for waiter in waiters { waiter.resume(returning: false) }
            // A pool that was just made may not have been started; its waiters are told anyway.
            for outlet in made { outlets.addTask { await outlet.run() } }
        }
    }

    /// Waits until a request may leave, whichever authority it names.
    package func reserve() async throws(CancellationError) -> Permit {
        if state.withLock({ $0.waitingCount == 0 && $0.take() }) { return Permit(self) }
        let id = Mutex<UInt64>(0)
        let isGranted = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
                let now = state.withLock { state -> Bool? in
                    if state.isStopping || Task.isCancelled { return false }
                    if state.waitingCount == 0, state.take() { return true }
                    let number = state.wait(continuation)
                    id.withLock { $0 = number }
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            // As in `HTTP2Pool`: either the mark is seen under the lock, or the waiter stands in the queue.
            let waiter = state.withLock { $0.cancel(id.withLock { $0 }) }
            waiter?.resume(returning: false)
        }
        guard isGranted else { throw CancellationError() }
        return Permit(self)
    }

    /// Sends to an authority, as ``HTTP2Pool/request(_:on:sendBefore:begun:answerBy:isUnrepeatable:)`` does.
    /// Within the request deadline it waits for a stream there too: without one the answer is that nothing
    /// was sent.
    ///
    /// - Parameter authority: `host` or `host:port`.
    /// - Parameter isUnrepeatable: it must not be sent twice.
    /// - Parameter make: makes the request with the fields that all to that authority share.
    /// - Throws: `.malformedURL` when the authority is none; the permit is used all the same.
    package func request(
        to authority: String, on permit: Permit, sendBefore: ContinuousClock.Instant,
        isUnrepeatable: Bool = false, _ make: (HTTP2HeaderTemplate) -> HTTP2Request
    ) async throws(HTTP2Error) -> HTTP2Answer {
        precondition(permit.use(), "a permit is for one request")
        defer { giveBack() }
        let begun = world.instant()
        let found = try state.withLock { state throws(HTTP2Error) in
            try state.pool(of: authority, at: begun) { () throws(HTTP2Error) in try outlet(authority) }
        }
        guard let found else { return unsent }
        if found.isNew { start.yield(found.pool) }
        found.goes?.hasToGo.ring()
        defer {
            let now = world.instant()
            state.withLock { $0.ended(authority, at: now) }
        }
        let pool = found.pool.pool
        let until = min(pool.deadline(ofOneBegun: begun), sendBefore)
        guard let slot = await pool.slot(ahead: false, until: until) else { return unsent }
        return await pool.request(
            make(found.pool.template), on: slot, sendBefore: sendBefore, begun: begun,
            isUnrepeatable: isUnrepeatable)
    }

    /// The counts of all authorities since the start, and what stands now.
    package func snapshot() -> HTTP2Snapshot {
        var snapshot = counters.snapshot()
        for outlet in state.withLock(\.pools) {
            let one = outlet.pool.snapshot()
            snapshot.connections += one.connections
            snapshot.inFlight += one.inFlight
            snapshot.waiting += one.waiting
            snapshot.deadline = max(snapshot.deadline, one.deadline)
        }
        return snapshot
    }

    /// What is under way is waited for no longer than this span.
    package func windDown(within span: Duration) {
        for outlet in state.withLock(\.pools) { outlet.pool.windDown(within: span) }
    }

    /// Authorities that have a pool.
    package var authorities: Int { state.withLock(\.pools.count) }

    fileprivate func giveBack() { state.withLock { $0.giveBack() }?.resume(returning: true) }

    private func outlet(_ authority: String) throws(HTTP2Error) -> Outlet {
        let endpoint = try HTTP2Endpoint(authority: authority, trust: trust, proxy: proxy)
        let pool = HTTP2Pool(
            dialer: HTTP2Dialer(endpoint: endpoint, options: options.pool, tls: tls), options: options.pool,
            counters: counters, group: group, world: world, journal: journal, lane: lane)
        return Outlet(pool, template(endpoint.authority))
    }

    /// No stream came in time, or nothing more is sent.
    private var unsent: HTTP2Answer {
        HTTP2Answer(
            cause: .connectionLost, fate: .unprocessed, sentAt: world.now(),
            connection: HTTP2ConnectionTag(number: 0))
    }

    private func sweepRegularly() async {
        while true {
            // Ends by cancellation alone.
            do { try await world.sleep(world.instant() + options.idleAfter / 4) } catch { return }
            let now = world.instant()
            for outlet in state.withLock({ $0.removeIdle(at: now) }) { outlet.hasToGo.ring() }
        }
    }
}
