import EventLoops
import NIOCore
import NIOHTTP1
import NIOTLS
import PushModel

/// One connection: takes requests one after the other, and answers each before it looks at the next.
///
/// Phases: `idle` → `reading` → `answering` → `flushing` → `idle`; a connection that ends goes to
/// `lingering`: our side is closed, and further bytes of the client are discarded until it ends too or a
/// deadline passes. Closing a socket with unread bytes, or before bytes that are on their way, would reset
/// it, and the client would lose an answer that it has not read yet. Everything runs on the connection's
/// event loop.
final class HTTPConnection: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase { case idle, reading, answering, flushing, lingering, ended }

    /// The index in the loop's register; −1 outside it.
    var place = -1
    private let core: ListenerCore
    private let register: LoopRegister
    private let mailbox: Mailbox<IngressJob>?
    private let socket: IPAddress
    private let socketKey: ClientKey
    /// Whose share of the connections this is; `nil` for a trusted proxy.
    private let holder: ClientKey?
    private let isTLS: Bool
    private var context: ChannelHandlerContext?
    private var phase = Phase.idle
    private var deadline: ContinuousClock.Instant
    /// A head has begun to arrive; then the deadline is the head's, not the idle connection's.
    private var isHeadBegun: Bool
    /// When the first byte of the head that is being read arrived, if the head is not whole yet.
    private var headBegunAt: ContinuousClock.Instant?
    private var request: RequestAssembly?
    private var serial: UInt64 = 0
    /// Parts of later requests, in order.
    private var waiting = CircularBuffer<HTTPServerRequestPart>()
    private var isReadHeld = false
    /// The connection ends with the next answer, because too much is waiting behind it.
    private var endsNext = false
    /// What is wrong with the bytes behind the parts that wait.
    private var faultBehind: IngressRefusal?
    /// The peer has ended its side; what it asked for before is still answered.
    private var isInputOver = false
    /// The answer being flushed said so.
    private var isLast = false

    init(
        core: ListenerCore, register: LoopRegister, socket: IPAddress, holder: ClientKey?, isTLS: Bool
    ) {
        self.core = core
        self.register = register
        mailbox = core.mailboxes[ObjectIdentifier(register.loop)]
        self.socket = socket
        socketKey = holder ?? core.key(of: socket)
        self.holder = holder
        self.isTLS = isTLS
        // A TLS handshake is part of the first head, because a client that opens a socket and sends nothing
        // holds keys and buffers.
        isHeadBegun = isTLS
        deadline = core.world.instant() + (isTLS ? core.limits.head : core.limits.idle)
    }

    // MARK: The channel's events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        register.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        register.remove(self)
        dropRequest()
        phase = .ended
        self.context = nil
        core.connectionClosed(holder)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch phase {
        case .idle, .reading: take(part)
        case .answering, .flushing:
            // One read at most waits here: the next is held until the answer is out.
            if waiting.count < core.limits.waitingParts {
                waiting.append(part)
            } else {
                endsNext = true
            }
        case .lingering, .ended: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.fireChannelReadComplete() }

    func read(context: ChannelHandlerContext) {
        let isBusy = phase == .answering || phase == .flushing
        if isBusy, !waiting.isEmpty || endsNext { isReadHeld = true } else { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if phase == .flushing, !isLast, context.channel.isWritable { next() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed: inputEnded()
        case TLSUserEvent.handshakeCompleted where phase == .idle:
            rest()
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let fault = error as? HTTPParserError else {
            // The decoder repeats the fault for bytes behind one that was answered already.
            if error is ByteToMessageDecoderError { return }
            return close()
        }
        switch phase {
        case .idle, .reading: refuse(Self.refusal(for: fault))
        case .answering, .flushing: faultBehind = Self.refusal(for: fault)
        case .lingering, .ended: break
        }
    }

    /// Bytes have arrived and the decoder has seen them: from now on a head must go on.
    func bytesArrived() {
        guard phase == .idle, !isHeadBegun else { return }
        isHeadBegun = true
        let now = core.world.instant()
        headBegunAt = now
        deadline = now + core.limits.head
    }

    // MARK: What the listener does

    func sweep(at now: ContinuousClock.Instant) {
        guard now >= deadline else { return }
        switch phase {
        case .idle where !isHeadBegun: endOutput()
        case .idle, .reading: refuse(.slowSender)
        case .answering: refuse(.noAnswer)
        case .flushing, .lingering: close()
        case .ended: break
        }
    }

    /// The listener stops: every connection ends with its next answer, or, if it stays quiet, when its last
    /// chance has passed.
    func drain() {
        guard phase == .idle, !isHeadBegun else { return }
        deadline = min(deadline, core.world.instant() + core.limits.lastChance)
    }

    func close() {
        phase = .ended
        context?.close(promise: nil)
    }

    /// The face's answer, if this is still the request that it is for.
    func answer(_ answer: HTTPOutbound, serial: UInt64) {
        guard phase == .answering, self.serial == serial, let request else { return }
        finish(request, with: answer)
    }

    // MARK: One request

    private func take(_ part: HTTPServerRequestPart) {
        switch part {
        case .head(let head): begin(head)
        case .body(let piece):
            guard let request else { return }
            let step = request.take(piece, core, cut: cut)
            deadline = request.deadline(core.limits)
            carryOut(step)
        case .end: complete()
        }
    }

    /// Ends the arriving request when others need its room.
    private func cut() -> @Sendable () -> Void {
        guard let loop = context?.eventLoop else { return {} }
        let (connection, serial) = (NIOLoopBound(self, eventLoop: loop), serial)
        return { loop.execute { connection.value.makeWay(serial) } }
    }

    private func makeWay(_ serial: UInt64) {
        if phase == .reading, self.serial == serial { refuse(.slowSender) }
    }

    private func begin(_ head: HTTPRequestHead) {
        phase = .reading
        isHeadBegun = true
        serial &+= 1
        let checked: CheckedHead
        do throws(HeadFault) { checked = try CheckedHead(head) } catch { return refuse(error.refusal) }
        let assembly = RequestAssembly(
            checked, core.router, from: socket, socketKey, isTLS: isTLS, begunAt: headBegunAt, core)
        headBegunAt = nil
        deadline = assembly.deadline(core.limits)
        let step = assembly.first(core)
        request = assembly
        carryOut(step)
    }

    private func carryOut(_ step: RequestAssembly.Step) {
        switch step {
        case .goOn: break
        case .sendContinue:
            guard let context else { return }
            var buffer = context.channel.allocator.buffer(capacity: 32)
            buffer.writeStaticString(continueBytes)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        case .refuse(let refusal): refuse(refusal)
        case .answer: if let headAnswer = request?.headAnswer { cut(headAnswer) }
        }
    }

    private func complete() {
        guard phase == .reading, let context, let request else { return }
        // It was dropped, and does not know yet.
        guard request.end(core) else { return refuse(.slowSender) }
        phase = .answering
        guard let entry = request.entry else {
            core.metrics.count(.notFound)
            return finish(request, with: plainRefusal(.notFound))
        }
        if let headAnswer = request.headAnswer { return finish(request, with: headAnswer) }
        deadline = request.answerBy(core.limits, completeAt: core.world.instant())
        let job = IngressJob(
            entry: entry, inbound: request.whole(answerBy: deadline),
            reply: IngressReply(
                loop: context.eventLoop, connection: NIOLoopBound(self, eventLoop: context.eventLoop),
                serial: serial))
        guard core.dispatch(job, to: mailbox) else {
            core.metrics.count(.overloaded)
            return finish(request, with: entry.face.refuse(.overloaded, tag: request.tag))
        }
    }

    /// Answers a request that was read to its end.
    private func finish(_ request: RequestAssembly, with answer: HTTPOutbound) {
        let isNothingLeft = waiting.isEmpty && faultBehind == nil && (isInputOver || core.isDraining)
        let isOver = endsNext || isNothingLeft
        let closes = answer.closes || isOver || !request.head.keepsAlive
        let now = core.world.instant()
        dropRequest()
        count(request, answer.status, at: now)
        phase = .flushing
        isLast = closes
        deadline = now + core.limits.flush
        let frame = AnswerFrame(
            isVersion10: request.head.isVersion10, isHeadOnly: request.head.verb == .head, closes: closes)
        write(answer, frame) { connection in connection.endOutput() }
        // A flush that emptied the socket's queue has gone on already, from the writability event.
        if phase == .flushing, !closes, context?.channel.isWritable == true { next() }
    }

    /// Ends our side behind all that was written; the client ends the other.
    private func endOutput() {
        guard !isInputOver, phase != .ended, let context else { return close() }
        phase = .lingering
        waiting.removeAll()
        deadline = core.world.instant() + core.limits.linger
        context.close(mode: .output, promise: nil)
        resumeReading()
    }

    /// Answers a request that cannot be read further, and ends the connection without cutting the answer off.
    private func refuse(_ refusal: IngressRefusal) {
        core.metrics.count(refusal)
        cut(request?.entry?.face.refuse(refusal, tag: request?.tag ?? 0) ?? plainRefusal(refusal))
    }

    /// The last answer, before the request was read to its end.
    private func cut(_ answer: HTTPOutbound) {
        let request = request
        dropRequest()
        let now = core.world.instant()
        if let request { count(request, answer.status, at: now) }
        phase = .lingering
        waiting.removeAll()
        deadline = now + core.limits.linger
        let frame = AnswerFrame(isHeadOnly: request?.head.verb == .head, closes: true)
        write(answer, frame) { connection in connection.context?.close(mode: .output, promise: nil) }
        resumeReading()
    }

    private func count(_ request: RequestAssembly, _ status: Int, at now: ContinuousClock.Instant) {
        guard let entry = request.entry else { return }
        core.failures.note(status, of: request.client, entry.face.name, request.credential)
        entry.count(status: status, after: request.startedAt.duration(to: now))
    }

    /// Writes an answer; `after` is called behind the last byte of one that ends the connection.
    private func write(
        _ answer: HTTPOutbound, _ frame: AnswerFrame, after: @escaping (HTTPConnection) -> Void
    ) {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: 256 + answer.body.count)
        buffer.writeAnswer(answer, frame, date: register.date(core.world.now()))
        guard frame.closes else { return context.writeAndFlush(wrapOutboundOut(buffer), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in after(self) }
    }

    /// Ready for the next request, which may have arrived already.
    private func next() {
        phase = .idle
        rest()
        while phase == .idle || phase == .reading, !waiting.isEmpty { take(waiting.removeFirst()) }
        if phase == .idle || phase == .reading, let faultBehind { return refuse(faultBehind) }
        if phase == .idle, endsNext || isInputOver { return endOutput() }
        if phase == .reading, isInputOver { return refuse(.malformed) }
        if phase == .idle || phase == .reading { resumeReading() }
    }

    /// Nothing of a request is here.
    private func rest() {
        isHeadBegun = false
        headBegunAt = nil
        let span = core.isDraining ? core.limits.lastChance : core.limits.idle
        deadline = core.world.instant() + span
    }

    private func resumeReading() {
        guard isReadHeld else { return }
        isReadHeld = false
        context?.read()
    }

    private func dropRequest() {
        request?.drop(core)
        request = nil
    }

    /// The peer has ended its side. What it asked for completely is still answered.
    private func inputEnded() {
        switch phase {
        case .idle where !isHeadBegun: close()
        case .idle, .reading: refuse(.malformed)
        case .answering, .flushing: isInputOver = true
        case .lingering: close()
        case .ended: break
        }
    }

    private static func refusal(for fault: HTTPParserError) -> IngressRefusal {
        switch fault {
        case .headerOverflow: .headersTooLarge
        case .invalidVersion: .unsupportedVersion
        default: .malformed
        }
    }
}

/// Stands before the decoder and tells the connection that bytes came, whole head or not. An origin keeps its
/// connection for days, so it wipes them where they arrived, as ``WipingTap`` does.
final class ByteTap: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let connection: HTTPConnection

    init(_ connection: HTTPConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = WipingTap.move(unwrapInboundIn(data), context.channel.allocator)
        context.fireChannelRead(wrapInboundOut(bytes))
        connection.bytesArrived()
    }
}
