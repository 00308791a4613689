import Dialling
import NIOCore
import PushModel
import Synchronization

/// One HTTP/2 connection: owns the session on its event loop and carries out what ``ConnectionState``
/// decides.
///
/// Work comes in batches: bytes that were read, or requests that senders put into the inbox since the last
/// turn. Each batch ends in one ``turn()``: take from the inbox, submit what the peer's limit allows (the
/// session's own queue is never used), write once, report once to the pool, and only then wake the callers.
final class HTTP2Connection: ChannelInboundHandler, @unchecked Sendable {
    // Safety: `inbox` is locked, the constants are Sendable, and every other field is touched on `eventLoop`.
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    struct Inbox {
        var slots: [HTTP2Slot] = []
        var closed = false
    }

    let pool: HTTP2Pool
    let tag: HTTP2ConnectionTag
    let eventLoop: any EventLoop
    let options: HTTP2Options
    let world: World
    let inbox = Mutex(Inbox())

    /// Until a socket is there.
    var dial: Dial<HTTP2Greeted>?
    var context: ChannelHandlerContext?
    var session: HTTP2Session?
    var state: ConnectionState
    var arrivals: [HTTP2Slot] = []
    /// Taken from the inbox, waiting for the limit or for the socket. At most what was reserved.
    var pending = CircularBuffer<HTTP2Slot>()
    /// Requests that must not be sent twice and wait for a PONG. They were reserved, too.
    var unproved: [HTTP2Slot] = []
    /// Requests in flight that were given up and may still be answered.
    var listened = 0
    var inFlight: ContiguousArray<HTTP2Slot> = []
    var finished: [Finished] = []
    var unsentBytes = 0
    var usualBodyBytes = 1024
    var submittedCount = 0
    /// Bytes of the last write.
    private var lastWritten = 0
    var closedCount = 0
    var drainToTell = false
    var turning = false
    var turnAgain = false
    /// Batches so far.
    var turns: UInt64 = 0
    var ticker: RepeatedTask?

    /// Enough for a few dozen frames, so that a burst is one write to the socket.
    static let writeLimitBytes = 1 << 16

    init(
        pool: HTTP2Pool, tag: HTTP2ConnectionTag, eventLoop: any EventLoop, options: HTTP2Options,
        world: World
    ) {
        self.pool = pool
        self.tag = tag
        self.eventLoop = eventLoop
        self.options = options
        self.world = world
        state = ConnectionState(options: options, now: world.instant())
    }

    // MARK: From any thread

    /// Hands a request over. Ends it at once as unprocessed when the connection is gone.
    func enqueue(_ slot: HTTP2Slot) {
        let (taken, first) = inbox.withLock { inbox -> (Bool, Bool) in
            guard !inbox.closed else { return (false, false) }
            inbox.slots.append(slot)
            return (true, inbox.slots.count == 1)
        }
        guard taken else {
            guard let sender = slot.end(.unprocessed) else { return }
            slot.sentAt = world.now()
            sender.resume(returning: slot.answer(.connectionLost, .unprocessed))
            return
        }
        // Only the first of a batch wakes the loop; it takes along what has come by then.
        if first { eventLoop.execute { self.turn() } }
    }

    /// Takes no more requests and leaves when the last is done.
    ///
    /// - Parameter listens: false waits for no late answers.
    func retire(listens: Bool = true) {
        eventLoop.execute {
            self.drain()
            if !listens { self.stopListening() }
            self.turn()
            // Not yet speaking HTTP/2: there is nothing to say farewell to.
            if self.session == nil { self.end(because: nil) }
        }
    }

    /// Starts what brings it a socket.
    func begin(_ dial: Dial<HTTP2Greeted>) {
        eventLoop.execute {
            guard self.state.phase == .connecting else { return }
            self.dial = dial
            dial.start()
        }
    }

    /// Takes over the socket on which the peer has begun to speak. On the event loop.
    func adopt(_ greeted: HTTP2Greeted, on channel: any Channel) {
        dial = nil
        guard state.phase == .connecting else { return channel.close(promise: nil) }
        session = greeted.session
        greeted.session.belong(to: self)
        state.secured()
        let sync = channel.pipeline.syncOperations
        do {
            try sync.addHandler(self, position: .after(greeted.handler))
        } catch {
            // The pipeline is being torn down.
            channel.close(promise: nil)
            return end(because: .unreachable)
        }
        sync.removeHandler(greeted.handler, promise: nil)
        receive(greeted.bytes)
        turn()
    }

    // MARK: The channel's events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        guard state.phase != .ended else { return context.close(promise: nil) }
        let period = max(
            .milliseconds(5), min(.milliseconds(250), options.deadline / 8, options.proofDeadline / 8))
        let amount = TimeAmount.milliseconds(period.wholeMilliseconds)
        ticker = eventLoop.scheduleRepeatedTask(initialDelay: amount, delay: amount) { [weak self] _ in
            self?.tick()
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end(because: nil)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { receive(unwrapInboundIn(data)) }

    /// The buffer that TLS reads into lives as long as the connection, for weeks: an answer would stay there
    /// until another one is as long. The session has taken what it needs, so the bytes are wiped where they
    /// arrived.
    private func receive(_ buffer: ByteBuffer) {
        defer {
            buffer.withUnsafeReadableBytes { wipe(UnsafeMutableRawBufferPointer(mutating: $0)) }
        }
        guard let session else { return }
        state.read(at: world.instant())
        if !buffer.withUnsafeReadableBytes(session.receive) { fail(.protocolViolation) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { turn() }

    func channelWritabilityChanged(context: ChannelHandlerContext) { turn() }

    func channelInactive(context: ChannelHandlerContext) { end(because: nil) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The library's words are dropped: they may quote the peer.
        end(because: nil)
        context.close(promise: nil)
    }

    // MARK: The session's events

    func receivedSettings() {
        if state.settings(peerLimit: session?.peerStreamLimit) {
            pool.ready(self, report())
        }
    }

    func receivedPong() {
        state.pong()
        // Before later requests. The PONG was read just now, which proves the connection.
        for slot in unproved.reversed() { pending.prepend(slot) }
        unproved.removeAll()
    }

    func receivedGoaway() {
        pool.counters.goaways.increment()
        drain()
    }

    /// The next bytes of a body.
    enum BodyPiece {
        case bytes(count: Int, last: Bool)
        /// Answered or given up meanwhile. The rest is withheld; END_STREAM is not sent, because it would
        /// make half a body look whole.
        case withheld
        /// It waited for the peer's window, and its lease ended meanwhile: the stream is cancelled.
        case cancelled
    }

    func readBody(of slot: HTTP2Slot, into buffer: UnsafeMutableRawBufferPointer) -> BodyPiece {
        guard slot.isOpen, let body = slot.request?.body else { return .withheld }
        // In the turn of its submission the lease has just been looked at: nearly always.
        if slot.turn != turns, let terms = slot.terms, world.instant() >= terms.sendBefore {
            finish(slot, .leaseRanOut, .unprocessed)
            reset(slot)
            return .cancelled
        }
        let count = min(buffer.count, body.count - slot.bodyOffset)
        body.reveal { bytes in
            buffer.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: bytes[slot.bodyOffset..<slot.bodyOffset + count]))
        }
        slot.bodyOffset += count
        unsentBytes -= count
        slot.bodySent = slot.bodyOffset == body.count
        return .bytes(count: count, last: slot.bodySent)
    }

    func received(_ bytes: UnsafeBufferPointer<UInt8>, on slot: HTTP2Slot) {
        let room = options.answerLimitBytes - slot.body.count
        if bytes.count <= room { return slot.body.append(contentsOf: bytes) }
        slot.body.append(contentsOf: bytes.prefix(room))
        // Longer than any push service's answer: the status counts, the rest is not read.
        answered(slot)
        reset(slot)
    }

    func answered(_ slot: HTTP2Slot) {
        slot.complete = true
        state.answered()
        guard slot.isOpen || slot.late != nil else { return }
        if (200..<300).contains(slot.status), state.good() { pool.proved() }
        pool.counters.answers.increment()
        if let begun = slot.begun { pool.answered(after: state.lastRead - begun, at: state.lastRead) }
        if slot.late != nil {
            pool.counters.late.increment()
            endLate(slot, slot.answer(.answered, .answered))
        }
        finish(slot, .answered, .answered)
    }

    func closed(_ slot: HTTP2Slot, refused: Bool) {
        if slot.isOpen {
            if refused { pool.counters.refused.increment() }
            if refused || !slot.bodySent {
                finish(slot, refused ? .refused : .reset, .unprocessed)
            } else {
                finish(slot, .reset, .unknown)
            }
        }
        endLate(slot, nil)
        remove(slot)
    }
}

// MARK: - One turn

extension HTTP2Connection {
    func turn() {
        if turning {
            turnAgain = true
            return
        }
        turning = true
        repeat {
            turnAgain = false
            turns &+= 1
            takeInbox()
            submitPending()
            write()
            tell()
        } while turnAgain
        turning = false
        if let session, session.isOver, state.phase != .ended {
            end(because: nil)
            context?.close(promise: nil)
        }
    }

    func takeInbox() {
        inbox.withLock { swap(&$0.slots, &arrivals) }
        pending.append(contentsOf: arrivals)
        arrivals.removeAll(keepingCapacity: true)
    }

    func submitPending() {
        guard !pending.isEmpty else { return }
        let now = world.instant()
        let wall = world.now()
        // Once: the whole state is copied for it, and it changes with the phase alone meanwhile.
        let limit = state.limit
        while let slot = pending.first {
            guard state.phase == .ready else {
                pending.removeFirst()
                endUnsubmitted(slot, .connectionLost)
                continue
            }
            guard inFlight.count < limit, context?.channel.isWritable == true, let session else {
                return
            }
            guard let request = slot.request, let terms = slot.terms else {
                preconditionFailure("a slot in the queue has its request")
            }
            slot.sentAt = wall
            slot.turn = turns
            guard now < terms.sendBefore else {
                pending.removeFirst()
                endUnsubmitted(slot, .leaseRanOut)
                continue
            }
            if terms.isUnrepeatable, waitsForProof(slot, at: now) {
                pending.removeFirst()
                continue
            }
            guard session.submit(slot, request) else {
                drain()
                continue
            }
            pending.removeFirst()
            submittedCount += 1
            slot.index = inFlight.count
            inFlight.append(slot)
            let size = request.body.count
            unsentBytes += size
            usualBodyBytes += (size - usualBodyBytes) / 8
            pool.counters.requests.increment()
            switch state.submitted(at: now) {
            case .ping: session.ping()
            case .drain: drain()
            case .none, .fail, .leave: break
            }
        }
    }

    /// Whether a request that must not be sent twice has to wait for a PONG, as it then does.
    func waitsForProof(_ slot: HTTP2Slot, at now: ContinuousClock.Instant) -> Bool {
        switch state.proof(at: now) {
        case .given: return false
        case .ping: session?.ping()
        case .awaited: break
        }
        unproved.append(slot)
        return true
    }

    /// Ends a slot that never reached the session, unprocessed.
    func endUnsubmitted(_ slot: HTTP2Slot, _ cause: HTTP2Answer.Cause) {
        slot.sentAt = world.now()
        submittedCount += 1
        closedCount += 1
        finish(slot, cause, .unprocessed)
    }

    func write() {
        guard let context, let session else { return }
        var more = true
        while more, context.channel.isWritable, state.phase != .ended {
            // As much as the last time, and a little more.
            let expected = max(2_048, lastWritten + lastWritten / 4)
            let produced = session.produce(
                limitBytes: Self.writeLimitBytes, expectedBytes: expected, from: context.channel.allocator
            ) { context.write(wrapOutboundOut($0), promise: nil) }
            guard let produced else { return fail(.protocolViolation) }
            more = produced.isMore
            guard produced.bytes > 0 else { continue }
            // A turn in which there is nothing to write says nothing about the next.
            lastWritten = produced.bytes
            context.flush()
        }
    }

    func report() -> PoolState<HTTP2Connection, HTTP2Pool.Waiter>.Report {
        defer { (submittedCount, closedCount) = (0, 0) }
        return .init(
            limit: state.limit, submitted: submittedCount, closed: closedCount,
            windowRoomBytes: (session?.sendWindowBytes ?? 0) - unsentBytes, usualBodyBytes: usualBodyBytes,
            writable: context?.channel.isWritable ?? false, isDoubted: state.isDoubted)
    }

    /// Reports to the pool, then wakes callers: the streams they free are free before they ask for more.
    func tell() {
        if drainToTell {
            drainToTell = false
            pool.drained(tag)
        }
        if state.phase == .ready || submittedCount + closedCount > 0 { pool.report(tag, report()) }
        guard !finished.isEmpty else { return }
        // Without copies: an answer is large.
        for index in finished.indices {
            finished[index].sender.resume(returning: finished[index].answer)
        }
        finished.removeAll(keepingCapacity: true)
    }
}
