package import NIOCore
import NIOPosix
package import PushModel

/// Connects to hosts of which some addresses may be dead (RFC 8305).
///
/// An attempt is one address: a TCP connection, and on it whatever the caller needs before it can rely on the
/// other side. Each attempt has its own channel, and the caller prepares each channel by itself; attempts
/// share nothing. The first that is ready wins, and the others are closed.
package struct Dialer: Sendable {
    package let options: DialOptions
    private let memory = DialMemory()

    package init(_ options: DialOptions = DialOptions()) { self.options = options }

    /// Makes a dial that has yet to be started.
    ///
    /// - Parameters:
    ///   - host: a name, or an address without brackets.
    ///   - loop: on which channels live and both closures are called.
    ///   - span: within which all must be over, the look-up included.
    ///   - addresses: instead of what the host's name means.
    ///   - prepare: called once for each connection that stands. It, or what it puts on the channel, says
    ///     through the attempt what comes of it; an error is the attempt's failure. What it makes for one
    ///     channel must not be given to another.
    ///   - done: called once.
    package func dial<Ready>(
        _ host: String, _ port: Int, on loop: any EventLoop, within span: Duration,
        addresses: [IPAddress]? = nil,
        prepare: @escaping @Sendable (any Channel, DialAttempt<Ready>) throws -> Void,
        done: @escaping @Sendable (Result<Dialled<Ready>, DialFault>) -> Void
    ) -> Dial<Ready> {
        Dial(
            host, port, loop, span, addresses, options: options, memory: memory, prepare: prepare, done: done)
    }

    /// Dials and waits; a caller that is cancelled gives it up.
    package func dial<Ready: Sendable>(
        _ host: String, _ port: Int, on loop: any EventLoop, within span: Duration,
        addresses: [IPAddress]? = nil,
        prepare: @escaping @Sendable (any Channel, DialAttempt<Ready>) throws -> Void
    ) async throws(DialFault) -> Dialled<Ready> {
        let answer = FirstAnswer<Result<Dialled<Ready>, DialFault>>()
        let dial = dial(host, port, on: loop, within: span, addresses: addresses, prepare: prepare) {
            answer.give($0)
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                answer.wait(continuation)
                dial.start()
            }
        } onCancel: {
            dial.cancel()
        }
        return try result.get()
    }

    /// Connects to a socket of this machine's file system, which has one address.
    package static func connect(
        socket path: String, on loop: any EventLoop, within span: Duration
    ) -> EventLoopFuture<any Channel> {
        ClientBootstrap(group: loop).connectTimeout(.milliseconds(span.wholeMilliseconds))
            .connect(unixDomainSocketPath: path)
    }
}

/// The connection that won.
package struct Dialled<Ready> {
    package let channel: any Channel
    package let address: IPAddress
    /// The value that the attempt gave when it succeeded.
    package let ready: Ready
}

extension Dialled: Sendable where Ready: Sendable {}

/// One attempt, as the code that prepares its channel sees it. Its verbs are for the channel's event loop;
/// after the first of `succeed` and `fail`, and after the dial is over, they do nothing.
package struct DialAttempt<Ready>: Sendable {
    fileprivate let dial: Dial<Ready>
    fileprivate let number: Int

    /// The other side is alive, however long it still takes: no other address would do better.
    package func hear() { dial.hear(number) }
    package func succeed(_ ready: Ready) { dial.succeed(number, ready) }
    /// Closes the channel.
    package func fail(_ error: any Error) { dial.fail(number, error) }
}

/// One dial: the look-up, the attempts and their end.
package final class Dial<Ready>: @unchecked Sendable {
    // Safety: the constants are Sendable; every other field is touched on the event loop alone. `start`,
    // `cancel` and the resolver's answer go there first, and timers and channels are that loop's own. An
    // attempt's verbs are called from its channel's handlers; debug builds check this.
    private struct Attempt {
        var channel: (any Channel)?
        var isOver = false
    }

    private let host: String
    private let port: Int
    private let loop: any EventLoop
    private let span: Duration
    private let given: [IPAddress]?
    private let options: DialOptions
    private let memory: DialMemory
    private var prepare: (@Sendable (any Channel, DialAttempt<Ready>) throws -> Void)?
    private var done: (@Sendable (Result<Dialled<Ready>, DialFault>) -> Void)?

    private var end = ContinuousClock.now
    private var lookUp: LookUp?
    private var addresses: [IPAddress] = []
    private var attempts: [Attempt] = []
    private var race: DialRace?
    private var told: (any Error)?
    private var deadline: Scheduled<Void>?
    private var next: Scheduled<Void>?
    private var isOver = false

    fileprivate init(
        _ host: String, _ port: Int, _ loop: any EventLoop, _ span: Duration, _ given: [IPAddress]?,
        options: DialOptions, memory: DialMemory,
        prepare: @escaping @Sendable (any Channel, DialAttempt<Ready>) throws -> Void,
        done: @escaping @Sendable (Result<Dialled<Ready>, DialFault>) -> Void
    ) {
        (self.host, self.port, self.loop, self.span, self.given) = (host, port, loop, span, given)
        (self.options, self.memory) = (options, memory)
        (self.prepare, self.done) = (prepare, done)
    }

    /// From any thread.
    package func start() { loop.execute { self.begin() } }

    /// From any thread.
    package func cancel() { loop.execute { self.finish(.failure(.cancelled)) } }

    private func begin() {
        guard !isOver else { return }
        end = .now + span
        deadline = loop.scheduleTask(in: .milliseconds(span.wholeMilliseconds)) { self.late() }
        if let known = given ?? IPAddress(host).map({ [$0] }) { return found(known) }
        let lookUp = LookUp(host) { addresses in self.loop.execute { self.found(addresses) } }
        self.lookUp = lookUp
        options.resolver.begin(lookUp)
    }

    private func found(_ found: [IPAddress]) {
        guard !isOver, race == nil else { return }
        lookUp = nil
        addresses = DialOrder.order(
            found, preferred: memory.last(host), limit: options.limits.addresses)
        guard !addresses.isEmpty else { return finish(.failure(.unresolved)) }
        let now = ContinuousClock.now
        race = DialRace(count: addresses.count, limits: options.limits, within: end - now, at: now)
        look()
    }

    /// Starts the attempts that are due, and looks again when the next will be.
    private func look() {
        next?.cancel()
        next = nil
        while !isOver, let number = race?.start(at: .now) { connect(number) }
        guard !isOver, let moment = race?.nextStart else { return }
        let wait = max(.zero, moment - .now).wholeMilliseconds + 1
        next = loop.scheduleTask(in: .milliseconds(wait)) { self.look() }
    }

    private func connect(_ number: Int) {
        attempts.append(Attempt())
        let target: SocketAddress
        do {
            target = try SocketAddress(ipAddress: addresses[number].text, port: port)
        } catch {
            return lose(number)
        }
        // The dial's own deadline is what ends an attempt; this only bounds a channel that was forgotten.
        ClientBootstrap(group: loop)
            .connectTimeout(.milliseconds(span.wholeMilliseconds))
            .channelInitializer { channel in
                guard !self.isOver else { return channel.eventLoop.makeFailedFuture(DialFault.cancelled) }
                // To be closed before it stands, when another attempt wins.
                self.attempts[number].channel = channel
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .connect(to: target)
            .whenComplete { result in
                switch result {
                case .success(let channel): self.connected(number, channel)
                case .failure: self.lose(number)
                }
            }
    }

    private func connected(_ number: Int, _ channel: any Channel) {
        guard !isOver else { return channel.close(promise: nil) }
        attempts[number].channel = channel
        race?.take(number, at: .now)
        do { try prepare?(channel, DialAttempt(dial: self, number: number)) } catch {
            return fail(number, error)
        }
        look()
    }

    // MARK: What attempts say

    fileprivate func hear(_ number: Int) {
        loop.assertInEventLoop()
        guard !isOver, !attempts[number].isOver else { return }
        race?.hear(number)
        look()
    }

    fileprivate func succeed(_ number: Int, _ ready: Ready) {
        loop.assertInEventLoop()
        guard !isOver, !attempts[number].isOver, let channel = attempts[number].channel else { return }
        // The winner is the caller's now.
        attempts[number].channel = nil
        memory.worked(addresses[number], for: host)
        finish(.success(Dialled(channel: channel, address: addresses[number], ready: ready)))
    }

    fileprivate func fail(_ number: Int, _ error: any Error) {
        loop.assertInEventLoop()
        guard !isOver, !attempts[number].isOver else { return }
        told = error
        lose(number)
    }

    private func lose(_ number: Int) {
        guard !isOver, !attempts[number].isOver else { return }
        attempts[number].isOver = true
        attempts[number].channel?.close(promise: nil)
        attempts[number].channel = nil
        race?.fail(number)
        if race?.isLost == true { return finish(.failure(told.map { .failed($0) } ?? .unreachable)) }
        look()
    }

    // MARK: Its end

    private func late() {
        if let told { return finish(.failure(.failed(told))) }
        finish(.failure(race?.hasTaken == true ? .silent : .late))
    }

    private func finish(_ result: Result<Dialled<Ready>, DialFault>) {
        guard !isOver else { return }
        isOver = true
        deadline?.cancel()
        next?.cancel()
        if let lookUp {
            lookUp.cancel()
            options.resolver.leave(lookUp)
        }
        let told = done
        (prepare, done, lookUp) = (nil, nil, nil)
        for attempt in attempts { attempt.channel?.close(promise: nil) }
        attempts = []
        told?(result)
    }
}
