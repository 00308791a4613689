package import EventLoops
package import NIOCore
package import PushModel
import Synchronization

/// One open WebSocket for tasks: read with ``receive()``, one reader at a time; send from anywhere.
///
/// Everything lives on the event loop of ``executor``; tasks that prefer it call without changing threads.
/// Reading ahead is bounded, and beyond the bound the socket is not read; senders wait for a slow peer,
/// bounded in number, bytes and time (``WebSocketLimits``).
package final class WebSocketConnection: WebSocketUser, @unchecked Sendable {
    // Safety: the constants are Sendable or immutable; every other field is touched on the event loop alone.
    package typealias Outcome<Value> = Result<Value, WebSocketError>

    package let executor: LoopExecutor
    private let eventLoop: any EventLoop
    private let limits: WebSocketLimits
    private let world: World

    private let doubt = Atomic<Bool>(false)

    private var link: WebSocketLink?
    private var end: WebSocketEnd?
    private var weLeave = false
    private var waiting = CircularBuffer<WebSocketMessage>()
    private var waitingBytes = 0
    private var reader: Waiter<WebSocketMessage?>?
    private var writers = CircularBuffer<Writer>()
    private var writersBytes = 0
    private var pings: [(number: UInt64, sentAt: ContinuousClock.Instant, waiter: Waiter<Duration>)] = []
    private var pingNumber: UInt64 = 0
    private var watcher: (fits: (Held) -> Bool, waiter: Waiter<Void>)?
    /// At most one for each caller of ``close(_:)``.
    private var leavers: [Waiter<Void>] = []

    private struct Writer {
        let message: WebSocketMessage
        let waiter: Waiter<Void>
        let deadline: Scheduled<Void>
    }

    package init(executor: LoopExecutor, limits: WebSocketLimits, world: World) {
        self.executor = executor
        eventLoop = executor.loop
        self.limits = limits
        self.world = world
        pingNumber = world.random()
    }

    // MARK: For tasks

    /// The next message; `nil` once the connection was closed in good order, by either side.
    ///
    /// What came before the end is handed out first.
    /// - Throws: `.cancelled`, and what broke the connection: `.lost`, `.silent`, `.protocolViolation`,
    ///   `.notUTF8`, `.tooLarge`.
    package func receive() async throws(WebSocketError) -> WebSocketMessage? {
        try await ask { connection, waiter in connection.next(waiter) }
    }

    /// Sends one message; returns when the socket has taken it. Messages leave in the order of the calls.
    ///
    /// - Throws: `.tooLarge`, `.overloaded`, `.writeDeadline` (nothing of it was sent), `.cancelled` (the
    ///   same), `.closed`.
    package func send(_ message: WebSocketMessage) async throws(WebSocketError) {
        guard message.count <= limits.messageBytes else { throw WebSocketError(.tooLarge) }
        try await ask { connection, waiter in connection.take(message, waiter) }
    }

    package func send(text: String) async throws(WebSocketError) { try await send(WebSocketMessage(text)) }

    /// Asks the peer for a sign of life and says how long it took.
    ///
    /// - Throws: `.overloaded`, `.cancelled`, `.closed`; a peer that says nothing ends the connection.
    package func ping() async throws(WebSocketError) -> Duration {
        try await ask { connection, waiter in connection.ping(waiter) }
    }

    /// Nothing has come for a while, and not for a PING either: without a frame in the second half of
    /// ``WebSocketLimits/pongDeadline`` the connection ends. Some peers answer no PING; whoever knows a
    /// question that they answer asks it now.
    package var isDoubted: Bool { doubt.load(ordering: .relaxed) }

    /// Says farewell and waits for the other side's, ``WebSocketLimits/closeDeadline`` at most.
    package func close(_ code: WebSocketCloseCode = .normal) async {
        // A caller who gives up waiting has still said farewell.
        _ = try? await ask { connection, waiter in connection.leave(code, waiter) }
    }

    /// Ends the socket now; for those who cannot wait.
    package func abort() {
        onLoop {
            self.weLeave = true
            self.link?.abort()
        }
    }

    /// What waits here.
    typealias Held = (bytes: Int, messages: Int, writers: Int, hasReader: Bool)

    /// What waits here now; for tests.
    func held() async -> Held {
        await withCheckedContinuation { continuation in
            onLoop { continuation.resume(returning: self.heldNow) }
        }
    }

    /// Returns once what waits here fits; for tests, one at a time.
    ///
    /// - Throws: `.cancelled`, as at the end of a test's time.
    func held(until fits: @escaping @Sendable (Held) -> Bool) async throws(WebSocketError) {
        try await ask { connection, waiter in
            if fits(connection.heldNow) { return waiter.finish(.success(())) }
            connection.watcher = (fits, waiter)
        }
    }

    /// Runs `body` on the loop with a waiter that `body` promises to resume.
    private func ask<Value: Sendable>(
        _ body: @escaping @Sendable (WebSocketConnection, Waiter<Value>) -> Void
    ) async throws(WebSocketError) -> Value {
        let waiter = Waiter<Value>()
        let outcome: Outcome<Value> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                onLoop {
                    waiter.start(continuation)
                    if !waiter.isOver { body(self, waiter) }
                }
            }
        } onCancel: {
            onLoop { waiter.finish(.failure(WebSocketError(.cancelled))) }
        }
        return try outcome.get()
    }

    private func onLoop(_ body: @escaping @Sendable () -> Void) {
        if eventLoop.inEventLoop { body() } else { eventLoop.execute(body) }
    }
}

// MARK: - On the loop

extension WebSocketConnection {
    private var heldNow: Held { (waitingBytes, waiting.count, writers.count, !(reader?.isOver ?? true)) }

    /// More waits here than before.
    private func grew() {
        guard let watcher, watcher.fits(heldNow) else { return }
        self.watcher = nil
        watcher.waiter.finish(.success(()))
    }

    private func next(_ waiter: Waiter<WebSocketMessage?>) {
        precondition(reader?.isOver ?? true, "a connection has one reader")
        if let message = waiting.popFirst() {
            waitingBytes -= message.count
            if waitingBytes <= limits.readAheadBytes / 2, waiting.count <= limits.readAheadMessages / 2 {
                link?.resume()
            }
            return waiter.finish(.success(message))
        }
        switch end {
        case nil:
            reader = waiter
            grew()
        case .closed: waiter.finish(.success(nil))
        case .failed(let code):
            waiter.finish(weLeave ? .success(nil) : .failure(WebSocketError(code)))
        }
    }

    private func take(_ message: WebSocketMessage, _ waiter: Waiter<Void>) {
        guard let link, end == nil, !weLeave else { return waiter.finish(.failure(WebSocketError(.closed))) }
        if writers.isEmpty, link.isWritable {
            link.send(message)
            return waiter.finish(.success(()))
        }
        guard writers.count < limits.waitingWriters,
            writersBytes + message.count <= limits.waitingWriteBytes
        else { return waiter.finish(.failure(WebSocketError(.overloaded))) }
        let amount = TimeAmount.milliseconds(limits.writeDeadline.wholeMilliseconds)
        let deadline = eventLoop.scheduleTask(in: amount) {
            waiter.finish(.failure(WebSocketError(.writeDeadline)))
            self.forgetWriters()
        }
        waiter.onCancel = { [weak self] in self?.forgetWriters() }
        writers.append(Writer(message: message, waiter: waiter, deadline: deadline))
        writersBytes += message.count
        grew()
    }

    /// Drops the messages of those who gave up.
    private func forgetWriters() {
        for writer in writers where writer.waiter.isOver {
            writer.deadline.cancel()
            writersBytes -= writer.message.count
        }
        writers.removeAll { $0.waiter.isOver }
    }

    private func ping(_ waiter: Waiter<Duration>) {
        guard let link, end == nil, !weLeave else { return waiter.finish(.failure(WebSocketError(.closed))) }
        pings.removeAll { $0.waiter.isOver }
        guard pings.count < limits.pings else { return waiter.finish(.failure(WebSocketError(.overloaded))) }
        pingNumber &+= 1
        pings.append((pingNumber, world.instant(), waiter))
        link.ping(ByteBuffer(integer: pingNumber))
    }

    private func leave(_ code: WebSocketCloseCode, _ waiter: Waiter<Void>) {
        weLeave = true
        guard let link, end == nil else { return waiter.finish(.success(())) }
        leavers.append(waiter)
        link.close(code)
        refuseWriters()
    }

    private func refuseWriters() {
        for writer in writers {
            writer.deadline.cancel()
            writer.waiter.finish(.failure(WebSocketError(.closed)))
        }
        writers.removeAll()
        writersBytes = 0
    }

    // MARK: The link's events

    package func opened(_ link: WebSocketLink) { self.link = link }

    package func received(_ message: WebSocketMessage) {
        if let reader, !reader.isOver {
            self.reader = nil
            return reader.finish(.success(message))
        }
        waiting.append(message)
        waitingBytes += message.count
        if waitingBytes >= limits.readAheadBytes || waiting.count >= limits.readAheadMessages {
            link?.pause()
        }
        grew()
    }

    package func ponged(_ payload: ByteBuffer) {
        guard let number = payload.getInteger(at: payload.readerIndex, as: UInt64.self),
            payload.readableBytes == 8, let index = pings.firstIndex(where: { $0.number == number })
        else { return }
        let now = world.instant()
        // A PONG answers all PINGs before its own (RFC 6455 §5.5.3).
        for ping in pings[...index] { ping.waiter.finish(.success(now - ping.sentAt)) }
        pings.removeFirst(index + 1)
    }

    package func doubted(_ isDoubted: Bool) { doubt.store(isDoubted, ordering: .relaxed) }

    package func becameWritable() {
        while let link, link.isWritable, let writer = writers.popFirst() {
            writer.deadline.cancel()
            writersBytes -= writer.message.count
            link.send(writer.message)
            writer.waiter.finish(.success(()))
        }
    }

    package func ended(_ end: WebSocketEnd) {
        self.end = end
        link = nil
        refuseWriters()
        for ping in pings { ping.waiter.finish(.failure(WebSocketError(.closed))) }
        pings.removeAll()
        for leaver in leavers { leaver.finish(.success(())) }
        leavers.removeAll()
        guard let reader, !reader.isOver else { return }
        self.reader = nil
        next(reader)
    }

    /// A caller that waits, resumed once: by what it waits for, or because it was cancelled.
    private final class Waiter<Value: Sendable>: @unchecked Sendable {
        // Safety: touched on the connection's event loop alone.
        private var continuation: CheckedContinuation<Outcome<Value>, Never>?
        private var outcome: Outcome<Value>?
        var onCancel: (() -> Void)?

        var isOver: Bool { outcome != nil }

        func start(_ continuation: CheckedContinuation<Outcome<Value>, Never>) {
            if let outcome { return continuation.resume(returning: outcome) }
            self.continuation = continuation
        }

        func finish(_ outcome: Outcome<Value>) {
            guard self.outcome == nil else { return }
            self.outcome = outcome
            continuation?.resume(returning: outcome)
            continuation = nil
            if case .failure(let error) = outcome, error.code == .cancelled { onCancel?() }
            onCancel = nil
        }
    }
}
