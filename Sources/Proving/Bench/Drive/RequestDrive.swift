package import NIOCore
import NIOPosix
import PushModel

/// How requests are let go.
package enum Pace: Sendable {
    /// So many a second, each at its own moment, whether or not earlier ones were answered.
    case rate(Double)
    /// Each connection asks again as soon as it has been answered.
    case max

    /// How many requests of a book have had their moment.
    ///
    /// - Parameters:
    ///   - elapsed: since the first one's moment.
    ///   - free: connections that could ask now.
    func due(of count: Int, after elapsed: Duration, asked: Int, free: Int) -> Int {
        switch self {
        case .max: min(count, asked + free)
        case .rate(let rate): min(count, Int(elapsed.inSeconds * rate) + 1)
        }
    }

    /// From the first request's moment to that of this one; `nil`: it has none.
    func moment(of index: Int) -> Duration? {
        switch self {
        case .max: nil
        case .rate(let rate): .nanoseconds(Int64(Double(index) / rate * 1e9))
        }
    }
}

/// What came of a drive.
package struct DriveReport: Sendable {
    /// Answers by status.
    package var statuses: [Int: Int] = [:]
    /// Asked, and the connection ended or the deadline passed.
    package var unanswered = 0
    /// Answers that hold the watched bytes (``RequestDrive/watch``).
    package var watched = 0
    /// From the moment a request was due to its answer: waiting for a free connection counts.
    package var latency = LatencyHistogram()
    /// From the first request's moment to the last answer.
    package var span = Duration.zero
    /// Most requests that were due and not yet asked.
    package var mostWaiting = 0

    package func answered(_ status: Int) -> Int { statuses[status] ?? 0 }

    /// Takes in what another drive of the same moments had.
    mutating func add(_ other: DriveReport) {
        statuses.merge(other.statuses, uniquingKeysWith: +)
        unanswered += other.unanswered
        watched += other.watched
        latency.add(other.latency)
        span = max(span, other.span)
        mostWaiting += other.mostWaiting
    }
}

/// Sends the requests of a book over keep-alive connections of one event loop, each once and in order.
///
/// With a rate the load is open: a request has its moment, and its latency counts from there, so that a relay
/// that stalls cannot hide it by being asked less. Moments are looked at each half millisecond and at each
/// answer.
package final class RequestDrive: @unchecked Sendable {
    // Safety: all fields but the constants are touched on `eventLoop` alone.

    private let host: String
    private let port: Int
    private let prepared: PreparedRequests
    private let pace: Pace
    private let watch: [UInt8]
    private let eventLoop: any EventLoop
    private let done: EventLoopPromise<DriveReport>

    private var idle: [HTTPCaller] = []
    private var callers: [HTTPCaller] = []
    private var alive = 0
    private var report = DriveReport()
    private var asked = 0
    private var finished = 0
    private var began = NIODeadline.uptimeNanoseconds(0)
    private var lastAnswer = NIODeadline.uptimeNanoseconds(0)
    private var ticking: RepeatedTask?
    private var hasEnded = false

    /// - Parameter watch: bytes that are looked for in each answer's body; empty: none.
    package init(
        host: String, port: Int, prepared: PreparedRequests, pace: Pace, watch: String = "",
        eventLoop: any EventLoop
    ) {
        self.host = host
        self.port = port
        self.prepared = prepared
        self.pace = pace
        self.watch = Array(watch.utf8)
        self.eventLoop = eventLoop
        done = eventLoop.makePromise()
    }

    /// Connects, drives, closes.
    ///
    /// - Parameter patience: after the last request's moment, so long until unanswered ones are given up.
    /// - Throws: `.unreachable` when a connection does not stand, `.badPlan` for an empty book.
    package func run(connections: Int, patience: Duration) async throws -> DriveReport {
        guard !prepared.isEmpty, connections > 0 else {
            done.fail(BenchError(.badPlan))
            throw BenchError(.badPlan)
        }
        do {
            for _ in 0..<min(connections, prepared.count) { try await connect() }
        } catch {
            eventLoop.execute { self.closeAll() }
            done.fail(BenchError(.unreachable))
            throw BenchError(.unreachable)
        }
        eventLoop.execute { self.start(patience: patience) }
        let report = try await done.futureResult.get()
        eventLoop.execute { self.closeAll() }
        return report
    }

    private func connect() async throws {
        _ = try await ClientBootstrap(group: eventLoop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            // The driver shares its machine with what it drives, which may hold everything up for a while.
            .connectTimeout(.seconds(60))
            .connect(host: host, port: port)
            .flatMapThrowing { channel in
                // On the one socket that won: a name's other addresses have no part in it.
                let caller = HTTPCaller { [weak self] in self?.answered($0, $1) }
                try channel.pipeline.syncOperations.addHandler(caller)
                self.callers.append(caller)
                self.alive += 1
                self.idle.append(caller)
            }
            .get()
    }

    private func start(patience: Duration) {
        began = .now()
        lastAnswer = began
        var whole = patience
        if case .rate(let rate) = pace { whole += .seconds(Double(prepared.count) / rate) }
        eventLoop.scheduleTask(in: .nanoseconds(Int64(whole.inSeconds * 1e9))) { self.end() }
        ticking = eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .microseconds(500)) { _ in
            self.ask()
        }
    }

    /// Asks what is due, as far as connections are free.
    private func ask() {
        guard !hasEnded else { return }
        let elapsed = Duration.nanoseconds((NIODeadline.now() - began).nanoseconds)
        let due = pace.due(of: prepared.count, after: elapsed, asked: asked, free: idle.count)
        while asked < due, let caller = idle.popLast() {
            guard !caller.hasEnded else { continue }
            caller.tag = asked
            caller.ask(prepared[asked])
            asked += 1
        }
        report.mostWaiting = max(report.mostWaiting, due - asked)
    }

    private func answered(_ caller: HTTPCaller, _ reply: HTTPReply?) {
        if caller.hasEnded { alive -= 1 }
        guard caller.tag >= 0, !hasEnded else { return }
        let now = NIODeadline.now()
        lastAnswer = now
        if let reply {
            report.statuses[reply.status, default: 0] += 1
            // With no rate, when it was asked is not kept: the latency of a closed loop says nothing.
            let since = pace.moment(of: caller.tag).map { (now - began).nanoseconds - $0.inNanoseconds }
            report.latency.record(nanoseconds: since ?? 0)
            if !watch.isEmpty, holds(reply.body) { report.watched += 1 }
        } else {
            report.unanswered += 1
        }
        finished += 1
        caller.tag = -1
        if !caller.hasEnded { idle.append(caller) }
        // Without a connection nothing will ever be answered.
        if finished == prepared.count || alive == 0 { end() } else { ask() }
    }

    private func holds(_ body: ByteBuffer) -> Bool {
        body.withUnsafeReadableBytes { bytes in
            guard bytes.count >= watch.count else { return false }
            for start in 0...(bytes.count - watch.count)
            where bytes[start] == watch[0] && bytes[start..<start + watch.count].elementsEqual(watch) {
                return true
            }
            return false
        }
    }

    private func end() {
        guard !hasEnded else { return }
        hasEnded = true
        ticking?.cancel()
        report.unanswered += asked - finished
        report.span = .nanoseconds((lastAnswer - began).nanoseconds)
        done.succeed(report)
    }

    private func closeAll() {
        for caller in callers { caller.close() }
        callers = []
        idle = []
    }
}
