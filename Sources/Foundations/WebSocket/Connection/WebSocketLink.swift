import EventLoops
package import NIOCore
package import NIOWebSocket
package import PushModel

/// The user of a link. Every call comes on the link's event loop.
package protocol WebSocketUser: AnyObject {
    func opened(_ link: WebSocketLink)
    func received(_ message: WebSocketMessage)
    /// A PONG, asked for or not.
    func ponged(_ payload: ByteBuffer)
    /// A PING of the link has not been answered for half of its deadline; or something has come since.
    func doubted(_ isDoubted: Bool)
    /// The socket takes more again.
    func becameWritable()
    /// Nothing more comes. Once for each link that was opened.
    func ended(_ end: WebSocketEnd)
}

extension WebSocketUser {
    package func doubted(_ isDoubted: Bool) {}
}

/// One WebSocket on its event loop: frames in and out, PING and PONG, farewells, the gate that stops reading.
///
/// Everything but the initialiser is called on `eventLoop`.
package final class WebSocketLink: ChannelInboundHandler, ChannelOutboundHandler, @unchecked Sendable {
    // Safety: every mutable field is touched on `eventLoop` alone, which each way in asserts.
    package typealias InboundIn = WebSocketFrame
    package typealias OutboundIn = WebSocketFrame
    package typealias OutboundOut = WebSocketFrame

    enum Phase { case idle, open, leaving, ended }

    package let eventLoop: any EventLoop
    package let role: WebSocketRole
    /// Off in simulators that misbehave.
    package var answersPings = true
    let limits: WebSocketLimits
    private let world: World
    private let user: any WebSocketUser
    private var assembly: FrameAssembly
    private var context: ChannelHandlerContext?
    private(set) var phase = Phase.idle
    private var hasToldEnd = false
    private var leftAt: ContinuousClock.Instant?
    private var heardAt: ContinuousClock.Instant
    private var pingedAt: ContinuousClock.Instant?
    /// The user was told that the PING has not been answered yet.
    private var isDoubted = false
    private var isPaused = false
    private var owesRead = false
    /// The last PING that could not be answered for want of room; earlier ones need no answer (RFC 6455
    /// §5.5.3).
    private var owedPong: ByteBuffer?
    private var ticker: RepeatedTask?

    package init(
        _ role: WebSocketRole, user: any WebSocketUser, limits: WebSocketLimits, world: World,
        eventLoop: any EventLoop
    ) {
        self.role = role
        self.user = user
        self.limits = limits
        self.world = world
        self.eventLoop = eventLoop
        assembly = FrameAssembly(role, limits)
        heardAt = world.instant()
    }

    /// What stands above the bytes, the link last.
    package var handlers: [any ChannelHandler] {
        [
            WipingTap(), WebSocketFrameEncoder(),
            ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: limits.messageBytes)), self
        ]
    }

    // MARK: What a user asks for

    /// Whether the socket takes more without piling it up.
    package var isWritable: Bool { phase == .open && context?.channel.isWritable == true }

    /// Sends a message, whether or not the socket is writable: keeping to ``isWritable`` is the user's part.
    package func send(_ message: WebSocketMessage) {
        eventLoop.assertInEventLoop()
        guard phase == .open else { return }
        switch message {
        case .text(let bytes): write(.text, bytes)
        case .binary(let bytes): write(.binary, bytes)
        }
    }

    /// At most 125 bytes.
    package func ping(_ payload: ByteBuffer) {
        eventLoop.assertInEventLoop()
        guard phase == .open else { return }
        write(.ping, payload)
    }

    /// Says farewell and waits ``WebSocketLimits/closeDeadline`` for the other side's.
    package func close(_ code: WebSocketCloseCode) {
        eventLoop.assertInEventLoop()
        guard phase == .open else { return }
        leave(code)
    }

    /// Ends the socket at once, without a word.
    package func abort() {
        eventLoop.assertInEventLoop()
        end(.failed(.lost))
    }

    /// Stops reading the socket: the peer's own window fills, and it must wait. Silence is not counted then.
    package func pause() {
        eventLoop.assertInEventLoop()
        isPaused = true
    }

    package func resume() {
        eventLoop.assertInEventLoop()
        guard isPaused else { return }
        isPaused = false
        heard()
        guard owesRead else { return }
        owesRead = false
        context?.read()
    }

    // MARK: The channel's events

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        phase = .open
        heardAt = world.instant()
        let shortest = min(limits.pingAfterSilence, limits.pongDeadline, limits.closeDeadline) / 8
        let amount = TimeAmount.milliseconds(
            min(.milliseconds(500), max(.milliseconds(5), shortest)).wholeMilliseconds)
        ticker = eventLoop.scheduleRepeatedTask(initialDelay: amount, delay: amount) { [weak self] _ in
            self?.tick()
        }
        user.opened(self)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        tell(.failed(.lost))
        stop()
    }

    package func read(context: ChannelHandlerContext) {
        // Past the farewell nobody is kept waiting by what is thrown away.
        if isPaused, phase == .open { owesRead = true } else { context.read() }
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        heard()
        guard phase == .open || phase == .leaving else { return }
        switch assembly.take(frame) {
        case .none: break
        case .message(let message): if phase == .open { user.received(message) }
        case .ping(let payload): answer(payload)
        case .pong(let payload): if phase == .open { user.ponged(payload) }
        case .close(let code): farewell(code)
        case .fail(let code, let error): fail(code, error)
        }
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            if let payload = owedPong { answer(payload) }
            if phase == .open { user.becameWritable() }
        }
        context.fireChannelWritabilityChanged()
    }

    package func channelInactive(context: ChannelHandlerContext) {
        end(.failed(.lost))
        context.fireChannelInactive()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error as? NIOWebSocketError {
        case .invalidFrameLength: fail(.messageTooBig, .tooLarge)
        case .fragmentedControlFrame, .multiByteControlFrameLength: fail(.protocolError, .protocolViolation)
        // The library's words are dropped: they may quote the peer.
        case nil: end(.failed(.lost))
        }
    }

    // MARK: Inside

    private func write(_ opcode: WebSocketOpcode, _ payload: ByteBuffer) {
        guard let context else { return }
        var mask: WebSocketMaskingKey?
        if role == .client { mask = WebSocketMaskingKey(world.randomBytes(4)) }
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: mask, data: payload)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    private func answer(_ payload: ByteBuffer) {
        guard phase == .open, answersPings else { return }
        guard isWritable else {
            owedPong = payload
            return
        }
        owedPong = nil
        write(.pong, payload)
    }

    /// The peer's farewell: answered if it came first. The server ends the socket (RFC 6455 §7.1.1), a client
    /// waits for that, within bounds.
    private func farewell(_ code: WebSocketCloseCode?) {
        if phase == .open { leave(code) }
        tell(.closed(code: code))
        if role == .server { shut() }
    }

    private func fail(_ code: WebSocketCloseCode, _ error: WebSocketError.Code) {
        if phase == .open { leave(code) }
        tell(.failed(error))
    }

    private func leave(_ code: WebSocketCloseCode?) {
        var payload = ByteBuffer()
        if let code { payload.writeInteger(code.rawValue) }
        write(.connectionClose, payload)
        phase = .leaving
        leftAt = world.instant()
        resume()
    }

    private func tell(_ end: WebSocketEnd) {
        guard !hasToldEnd, phase != .idle else { return }
        hasToldEnd = true
        user.ended(end)
    }

    private func end(_ end: WebSocketEnd) {
        guard phase != .ended else { return }
        tell(end)
        shut()
    }

    /// Ends the socket. A farewell that the kernel had no room for is lost with it: the peer did not read.
    private func shut() {
        let channel = context?.channel
        stop()
        channel?.close(promise: nil)
    }

    private func stop() {
        phase = .ended
        ticker?.cancel()
        ticker = nil
        context = nil
    }

    private func heard() {
        (heardAt, pingedAt) = (world.instant(), nil)
        doubt(false)
    }

    private func doubt(_ isDoubted: Bool) {
        guard self.isDoubted != isDoubted else { return }
        self.isDoubted = isDoubted
        user.doubted(isDoubted)
    }

    private func tick() {
        let now = world.instant()
        switch phase {
        case .idle, .ended: return
        case .leaving:
            guard let leftAt, now - leftAt >= limits.closeDeadline else { return }
            end(.closed(code: nil))
        case .open:
            guard !isPaused else { return }
            if let pingedAt {
                if now - pingedAt >= limits.pongDeadline { return end(.failed(.silent)) }
                if now - pingedAt >= limits.pongDeadline / 2 { doubt(true) }
            } else if now - heardAt >= limits.pingAfterSilence {
                pingedAt = now
                ping(ByteBuffer(bytes: world.randomBytes(8)))
            }
        }
    }
}
