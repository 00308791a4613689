import NIOCore
import NIOSSL
import PushModel

/// One connection of a simulated push service: feeds the session, asks the judge, and misbehaves as the knobs
/// say. Lives on its channel's event loop.
final class SimulatorConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Open streams beyond this are refused even if the knobs say that excess streams are served.
    static let streamCap = 4096
    /// How long a connection may take to drain after GOAWAY, including streams that are never answered.
    static let drainLimit = TimeAmount.seconds(30)

    let session = HTTP2ServerSession()
    let judge: any ConnectionJudge
    let board: KnobBoard
    let world: World
    var knobs: ConnectionKnobs
    var context: ChannelHandlerContext?
    /// Requests that were received completely.
    var requests = 0
    var highestJudged: Int32 = 0
    var highestOpened: Int32 = 0
    var ending = Ending()
    private var limit = StreamLimit()
    private var refused: Set<Int32> = []
    private var withheld: [Int32: Int] = [:]
    private var withheldBytes = 0
    private var line = DelayLine()
    private var lineTimer: Scheduled<Void>?
    private var isFlushDue = false
    private var lapse: ConnectionLapse?
    private var hasRead = false

    /// The stage of the connection's ending.
    struct Ending {
        /// Requests on higher streams are no longer judged.
        var frozenAbove: Int32?
        var isAnnounced = false
        var isSent = false
        var closesAtOnce = false
        /// The socket closes when the last byte has left.
        var closes = false
    }

    init(judge: any ConnectionJudge, board: KnobBoard, world: World) {
        self.judge = judge
        self.board = board
        self.world = world
        knobs = board.knobs
        session.events = self
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        lineTimer?.cancel()
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        begin()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        board.remove(context.channel)
        lineTimer?.cancel()
        context.fireChannelInactive()
    }

    private func begin() {
        guard let context, limit.announced == nil else { return }
        guard board.add(context.channel) else {
            context.close(promise: nil)
            return
        }
        limit.announce(knobs.streamsAtStart)
        session.submitSettings(
            streams: knobs.streamsAtStart,
            [
                (1, knobs.headerTableBytes), (4, knobs.initialWindowBytes),
                (5, knobs.frameBytes), (6, knobs.headerListBytes)
            ])
        flushSoon()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !ending.closes, lapse != .dead else { return }
        if !hasRead {
            // A connection's age counts from its first bytes, because before them TLS is not finished.
            hasRead = true
            scheduleGoAway()
        }
        let isSound = unwrapInboundIn(data).withUnsafeReadableBytes { session.receive($0) }
        if !isSound {
            // The library's last frames (a GOAWAY with the fault) are sent before the end.
            ending.closes = true
            flush()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        flush()
        context.fireChannelReadComplete()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is KnobBoard.Turned: turned()
        case KnobBoard.End.goAway(let plan): announceGoAway(plan)
        case KnobBoard.End.kill: kill()
        case let lapse as ConnectionLapse: self.lapse = lapse
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // If a peer breaks TLS or its socket, the connection just ends.
        context.close(promise: nil)
    }

    private func turned() {
        let old = knobs
        knobs = board.knobs
        if old.withholdsWindow, !knobs.withholdsWindow { openWindows() }
        if limit.isRaised, knobs.streams != limit.announced { setLimit(knobs.streams) }
        if !limit.isRaised, knobs.streamsAtStart != limit.announced, limit.announced == old.streamsAtStart {
            setLimit(knobs.streamsAtStart)
        }
        if hasRead, old.goAway != knobs.goAway { scheduleGoAway() }
        flushSoon()
    }

    private func setLimit(_ streams: UInt32) {
        guard limit.announced != streams else { return }
        limit.announce(streams)
        session.submitSettings(streams: streams)
    }

    private func openWindows() {
        session.consumeConnection(withheldBytes)
        for (stream, bytes) in withheld { session.consumeStream(bytes, on: stream) }
        withheldBytes = 0
        withheld.removeAll()
    }

    /// Raises and lowers the stream limit as answers go (docs/push-services.md §2.6).
    func weigh(_ weight: SimulatedAnswer.Weight) {
        switch weight {
        case .accepted:
            limit.isRaised = true
            setLimit(knobs.streams)
        case .rejected(let withGoodToken):
            if knobs.dropsOnRejection {
                limit.isRaised = false
                setLimit(1)
            } else if withGoodToken, !limit.isRaised {
                limit.isRaised = true
                setLimit(knobs.streams)
            }
        case .neutral:
            break
        }
    }
}

// MARK: what the session reports

extension SimulatorConnection: HTTP2ServerSessionEvents {
    func opened(_ stream: Int32) {
        highestOpened = max(highestOpened, stream)
        let open = session.openStreams - refused.count
        guard open > Int(limit.announced ?? .max) || open > Self.streamCap else { return }
        switch knobs.excess {
        case .serve where open <= Self.streamCap:
            break
        case .goAway where open > limit.acknowledged ?? .max:
            ending.frozenAbove = ending.frozenAbove ?? highestJudged
            sendGoAway(GoAwayKnob(errorCode: 11, debugData: "Maximum active streams violated"))
        case .serve, .refuse, .goAway:
            refused.insert(stream)
            session.submitReset(stream, code: 7)
        }
    }

    func received(_ request: SimulatedRequest, on stream: Int32) {
        // Bytes in the same read after the request that killed the connection are ignored.
        guard !ending.closes, !refused.contains(stream) else { return }
        requests += 1
        if lapse == .mute { return }
        freezeIfPlanned()
        if let frozen = ending.frozenAbove, stream > frozen {
            announceGoAwayIfDue()
            return
        }
        let fault = chosenFault()
        if let fault, !fault.isJudged {
            commit(fault, answer: nil, on: stream)
        } else if fault == nil, !knobs.answers.isEmpty, judge.isPush(request),
            let prepared = board.takeAnswer()
        {
            highestJudged = max(highestJudged, stream)
            let own = prepared.isJudged ? judge.judge(request) : nil
            if let own { weigh(own.weight) }
            send(prepared.answer(insteadOf: own), on: stream)
        } else {
            highestJudged = max(highestJudged, stream)
            let answer = judge.judge(request)
            weigh(answer.weight)
            if let fault { commit(fault, answer: answer, on: stream) } else { send(answer, on: stream) }
        }
        announceGoAwayIfDue()
    }

    func receivedBody(_ bytes: Int, on stream: Int32) {
        guard knobs.withholdsWindow else {
            session.consume(bytes, on: stream)
            return
        }
        withheldBytes += bytes
        withheld[stream, default: 0] += bytes
    }

    func receivedPing(_ opaque: [UInt8]) {
        if !knobs.ignoresPing { session.submitPingAnswer(opaque) }
    }

    func receivedSettingsAcknowledgement() { limit.acknowledge() }

    func closed(_ stream: Int32) {
        refused.remove(stream)
        withheld.removeValue(forKey: stream)
    }
}

// MARK: answers, faults and bytes

extension SimulatorConnection {
    private func chosenFault() -> RequestFault? {
        guard !knobs.faults.isEmpty else { return nil }
        return knobs.faults.prefix(16).first { fault in
            switch fault.choice {
            case .number(let number): number == requests
            case .every(let count): count > 0 && requests % count == 0
            case .share(let share): Double(world.random() >> 11) / Double(UInt64(1) << 53) < share
            }
        }
    }

    private func send(_ answer: SimulatedAnswer, on stream: Int32) {
        guard knobs.answerDelay != .none || answer.delay > .zero, let context else {
            session.submitAnswer(answer, on: stream)
            return
        }
        let delay = max(answer.delay, knobs.answerDelay.draw(world.random()))
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) {
            self.session.submitAnswer(answer, on: stream)
            self.flushSoon()
        }
    }

    private func commit(_ fault: RequestFault, answer: SimulatedAnswer?, on stream: Int32) {
        let answer = answer ?? SimulatedAnswer(status: 200)
        switch fault.kind {
        case .neverAnswered:
            break
        case .reset(let code):
            session.submitReset(stream, code: code)
        case .resetAfterAnswer:
            session.submitAnswer(answer, on: stream)
            // The library would drop the answer because of the reset, so the answer is sent first.
            flush()
            session.submitReset(stream, code: 0)
        case .killedMidFrame:
            flush()
            session.submitAnswer(answer, on: stream)
            var first: ByteBuffer?
            session.drain { frame in
                guard first == nil else { return }
                first = ByteBuffer(bytes: frame.prefix(9 + (frame.count - 9) / 2))
            }
            if let first { write(first) }
            kill()
        }
    }

    /// Closes the socket below TLS, without a close message.
    func kill() {
        guard let context else { return }
        ending.closes = true
        context.flush()
        if let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            // Absent only if a test runs without TLS.
            tls.close(mode: .all, promise: nil)
        } else {
            context.close(promise: nil)
        }
    }

    func flushSoon() {
        guard !isFlushDue, let context else { return }
        isFlushDue = true
        context.eventLoop.assumeIsolated().execute { self.flush() }
    }

    func flush() {
        isFlushDue = false
        guard let context, context.channel.isActive else { return }
        var out: ByteBuffer?
        session.drain { frame in
            if out == nil { out = context.channel.allocator.buffer(capacity: 4096) }
            out?.writeBytes(frame)
        }
        if let out { write(out) }
        if ending.isSent, ending.closesAtOnce || session.isOver { ending.closes = true }
        if !ending.isSent, session.isOver { ending.closes = true }
        if ending.closes, line.isEmpty { context.close(promise: nil) }
    }

    private func write(_ bytes: ByteBuffer) {
        guard let context else { return }
        if knobs.roundTrip == .zero, line.isEmpty {
            context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
            return
        }
        guard line.append(bytes, due: .now() + TimeAmount(knobs.roundTrip)) else {
            context.close(promise: nil)
            return
        }
        if lineTimer == nil { armLine() }
    }

    private func armLine() {
        guard let due = line.nextDue, let context else { return }
        lineTimer = context.eventLoop.assumeIsolated().scheduleTask(deadline: due) {
            self.lineTimer = nil
            let now = NIODeadline.now()
            while let lot = self.line.next(at: now) { context.write(self.wrapOutboundOut(lot), promise: nil) }
            context.flush()
            self.armLine()
            if self.ending.closes, self.line.isEmpty { context.close(promise: nil) }
        }
    }
}

/// The stream limit as announced, and as the peer has acknowledged it.
private struct StreamLimit {
    private(set) var announced: UInt32?
    private(set) var acknowledged: Int?
    var isRaised = false
    private var unacknowledged: [UInt32] = []

    init() {}

    mutating func announce(_ streams: UInt32) {
        announced = streams
        unacknowledged.append(streams)
    }

    /// SETTINGS are acknowledged in the order in which they were sent (RFC 9113 §6.5.3).
    mutating func acknowledge() {
        if !unacknowledged.isEmpty { acknowledged = Int(unacknowledged.removeFirst()) }
    }
}
