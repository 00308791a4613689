import EventLoops
package import NIOCore
package import PushModel
import Synchronization

/// Connections to one authority, which the pool opens and replaces, and streams on them by reservation.
///
/// A lane first reserves a stream and then picks its most urgent push. A request that a peer left unprocessed
/// (GOAWAY, REFUSED_STREAM) is sent exactly once more, elsewhere, with the same fields; one that was never
/// written may move freely within the request's deadline.
package final class HTTP2Pool: Sendable {
    typealias Waiter = UnsafeContinuation<HTTP2Slot?, Never>
    typealias State = PoolState<HTTP2Connection, Waiter>

    package let options: HTTP2Options
    let counters = HTTP2Counters()
    private let dialer: HTTP2Dialer
    /// All connections of a pool stand on one loop, and so do the tasks that use them: no request changes
    /// threads. One loop's thread carries more requests than a push service grants one sender.
    private let loop: any EventLoop
    package let executor: any TaskExecutor
    private let world: World
    private let journal: Journal
    private let lane: LaneName?
    private let state: Mutex<State>
    private let patience: Mutex<PoolPatience>
    /// When it looks for what time alone makes due.
    private let looks: RegularLooks
    /// An answer that took longer tells how long the next may take.
    private let closeCall: Duration

    /// - Parameters:
    ///   - group: event loops that pools are spread over.
    ///   - lane: named in the journal.
    /// - Throws: `.badCertificateFile` when the endpoint's CA cannot be used.
    package init(
        endpoint: HTTP2Endpoint, options: HTTP2Options = HTTP2Options(), group: any EventLoopGroup,
        world: World,
        journal: Journal = .silent, lane: LaneName? = nil
    ) throws(HTTP2Error) {
        self.options = options
        dialer = try HTTP2Dialer(endpoint: endpoint, options: options)
        loop = group.next()
        executor = LoopExecutor(loop)
        self.world = world
        looks = RegularLooks(world)
        self.journal = journal
        self.lane = lane
        state = Mutex(State(options: options))
        let patience = PoolPatience(options: options)
        closeCall = patience.closeCall
        self.patience = Mutex(patience)
    }

    /// Keeps connections until cancelled; then lets what is in flight finish within the request deadline and
    /// closes. A graceful stop of the process does not end it: the lane has pushes to send until it has
    /// drained, and may need another connection for them.
    package func run() async throws {
        state.withLock { $0.start() }
        look()
        while !Task.isCancelled {
            await looks.next(every: .seconds(1)) { state.withLock { $0.rest(at: moment) } }
            look()
        }
        await stop()
    }

    /// Waits until a request could leave at once.
    package func reserve() async throws(CancellationError) -> HTTP2Slot {
        guard let slot = await slot(ahead: false, until: nil) else { throw CancellationError() }
        return slot
    }

    /// A slot that is free now, unless somebody waits for one.
    package func reserveAtOnce() -> HTTP2Slot? {
        state.withLock { $0.waitingCount == 0 ? $0.take()?.link : nil }.map(HTTP2Slot.init(on:))
    }

    var moment: ContinuousClock.Instant { world.instant() }

    /// Sends the request of the slot once, or once more where the first was left unprocessed. Every fault
    /// comes back as an answer, within the request deadline.
    func send(on slot: HTTP2Slot) async -> HTTP2Answer {
        let answer = await submit(slot)
        guard answer.fate == .unprocessed else { return answer }
        return await sendAgain(after: answer, on: slot)
    }

    /// The same on other connections, for a request that was not processed.
    private func sendAgain(after first: HTTP2Answer, on slot: HTTP2Slot) async -> HTTP2Answer {
        var (answer, slot, resent) = (first, slot, false)
        while answer.fate == .unprocessed, answer.cause == .refused || answer.cause == .connectionLost,
            !(slot.written && resent)
        {
            guard let terms = slot.terms, let begun = slot.begun else { return answer }
            let deadline = terms.answerBy ?? self.deadline(ofOneBegun: begun)
            guard world.instant() < min(deadline, terms.sendBefore) else { return answer }
            if slot.written {
                resent = true
                counters.resent.increment()
            }
            guard let next = await self.slot(ahead: true, until: deadline) else { return answer }
            next.take(over: slot)
            slot = next
            answer = await submit(slot)
        }
        return answer
    }

    /// When a request is given up that was handed over then, as far as is known now.
    func deadline(ofOneBegun begun: ContinuousClock.Instant) -> ContinuousClock.Instant {
        let allowance = allowance(at: world.instant())
        let own = begun + allowance.span
        return min(own, allowance.until ?? own)
    }

    /// Present and future requests are waited for no longer than this span.
    package func windDown(within span: Duration) {
        let end = world.instant() + span
        patience.withLock { $0.end(at: end) }
    }

    /// Takes no more requests on that connection; another is opened in its place.
    package func replace(_ connection: HTTP2ConnectionTag) {
        let link = state.withLock { state in
            state.drain(connection.number)
            return state.entries.first { $0.tag == connection.number }?.link
        }
        link?.retire()
        look()
    }

    package func snapshot() -> HTTP2Snapshot {
        var snapshot = counters.snapshot()
        state.withLock { state in
            snapshot.connections = state.readyCount
            snapshot.inFlight = state.inFlight
            snapshot.waiting = state.waitingCount
        }
        snapshot.deadline = allowance(at: world.instant()).span
        return snapshot
    }
}

// MARK: - Slots

extension HTTP2Pool {
    /// A slot now or later; `nil` when the task is cancelled, the moment passes, or the pool closes.
    func slot(ahead: Bool, until: ContinuousClock.Instant?) async -> HTTP2Slot? {
        if !ahead, let slot = reserveAtOnce() { return slot }
        let id = Mutex<UInt64>(0)
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                enqueue(continuation, ahead: ahead, until: until, id: id)
            }
        } onCancel: {
            // The handler runs after the task is marked: either `enqueue` sees the mark under the pool's
            // lock, or the waiter stands in the queue by the time this has the lock.
            let waiter = state.withLock { $0.cancel(id.withLock { $0 }) }
            waiter?.resume(returning: nil)
        }
    }

    private func enqueue(
        _ waiter: Waiter, ahead: Bool, until: ContinuousClock.Instant?, id: borrowing Mutex<UInt64>
    ) {
        enum Step { case slot(HTTP2Connection), refused, queued(first: Bool, wakes: Bool) }
        let now = world.instant()
        let step = state.withLock { state -> Step in
            if state.stopping || Task.isCancelled { return .refused }
            if ahead || state.waitingCount == 0, let (_, link) = state.take() { return .slot(link) }
            let first = state.waitingCount == 0
            let number = state.wait(waiter, ahead: ahead, until: until, now: now)
            id.withLock { $0 = number }
            return .queued(first: first, wakes: state.rests)
        }
        switch step {
        case .slot(let link): waiter.resume(returning: HTTP2Slot(on: link))
        case .refused: waiter.resume(returning: nil)
        case .queued(let first, let wakes):
            looks.wake()
            if wakes { look() } else if first { lookLater(options.growAfter) }
            if let until { lookLater(until - now) }
        }
    }

    @inline(__always)
    private func submit(_ slot: HTTP2Slot) async -> HTTP2Answer {
        await withUnsafeContinuation { sender in
            slot.sender = sender
            slot.connection.enqueue(slot)
        }
    }

    func giveBack(_ tag: HTTP2ConnectionTag) {
        let now = world.instant()
        serve(state.withLock { $0.giveBack(tag.number, now: now) })
    }

    private func serve(_ grants: [State.Grant]) {
        for grant in grants { grant.waiter.resume(returning: HTTP2Slot(on: grant.link)) }
    }
}

// MARK: - What connections tell

extension HTTP2Pool {
    func ready(_ connection: HTTP2Connection, _ report: State.Report) {
        counters.opened.increment()
        let now = world.instant()
        serve(state.withLock { $0.ready(connection.tag.number, connection, report, now: now) })
        look()
    }

    func report(_ tag: HTTP2ConnectionTag, _ report: State.Report) {
        let now = world.instant()
        serve(state.withLock { $0.report(tag.number, report, now: now) })
        if report.isDoubted { looks.wake() }
    }

    func drained(_ tag: HTTP2ConnectionTag) {
        state.withLock { $0.drain(tag.number) }
        look()
    }

    func allowance(at now: ContinuousClock.Instant) -> PoolPatience.Allowance {
        patience.withLock { $0.allowance(at: now) }
    }

    /// A request was answered so long after its hand-over.
    func answered(after span: Duration, at now: ContinuousClock.Instant) {
        if span > closeCall { patience.withLock { $0.answered(after: span, at: now) } }
    }

    /// Whether one more stream that was given up may stay open; then it is counted.
    func listens() -> Bool {
        let count = counters.listened.wrappingAdd(1, ordering: .relaxed).newValue
        if count <= options.lateStreams { return true }
        counters.listened.increment(by: -1)
        return false
    }

    /// A connection's first good answer.
    func proved() { state.withLock { $0.proved() } }

    /// - Parameter idle: no request was under way.
    func ended(_ tag: HTTP2ConnectionTag, proved: Bool, idle: Bool, because code: HTTP2Error.Code?) {
        let (now, random) = (world.instant(), world.random())
        state.withLock {
            $0.ended(tag.number, proved: proved, idle: idle && code == nil, now: now, random: random)
        }
        if let code {
            counters.failed.increment()
            note(code)
        } else {
            counters.closed.increment()
        }
        look()
    }

    private func note(_ code: HTTP2Error.Code) {
        guard let lane else { return }
        journal.note(
            "push service connection failed", [.lane: lane, .code: ErrorCode(HTTP2Error(code))],
            level: .warning)
    }
}

// MARK: - Opening and closing

extension HTTP2Pool {
    /// Does what is due.
    private func look() {
        let now = world.instant()
        let plan = state.withLock { $0.plan(now: now) }
        // Whoever calls it may have changed something.
        looks.wake()
        for waiter in plan.expire { waiter.resume(returning: nil) }
        for link in plan.retire { link.retire() }
        for tag in plan.open { open(HTTP2ConnectionTag(number: tag)) }
        if let moment = plan.lookAgain { lookLater(moment - now) }
    }

    private func lookLater(_ span: Duration) {
        let wait = TimeAmount.milliseconds(max(1, span.wholeMilliseconds + 1))
        loop.scheduleTask(in: wait) { self.look() }
    }

    private func open(_ tag: HTTP2ConnectionTag) {
        let connection = HTTP2Connection(
            pool: self, tag: tag, eventLoop: loop, options: options, world: world)
        let stopping = state.withLock { state in
            state.dialing(tag.number, connection)
            return state.stopping
        }
        if stopping { return connection.retire() }
        dialer.dial(connection)
    }

    private func stop() async {
        let (waiters, links) = state.withLock { $0.stop() }
        for waiter in waiters { waiter.resume(returning: nil) }
        for link in links { link.retire(listens: false) }
        let until = world.instant() + options.deadline
        // Polled, since it happens once and only at the end. Being cancelled already, the task cannot sleep.
        while !state.withLock({ $0.entries.isEmpty }), world.instant() < until {
            await pause(.milliseconds(10))
        }
    }

    private func pause(_ span: Duration) async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            loop.scheduleTask(in: .milliseconds(span.wholeMilliseconds)) { continuation.resume() }
        }
    }
}
