import Foundation
import PushModel
import Synchronization

/// What the threads of an engine share.
final class PostgresCore: Sendable {
    let owner: Digest16
    let limits: PostgresLimits
    let connector: PostgresConnector
    let queue: WorkQueue
    let counts: OwedCounts
    let world: World
    let journal: Journal

    struct Cursor: Hashable {
        var lane: String
        var pushClass: PushClass
    }

    /// Below these nothing is left: what looks for the oldest row begins there.
    ///
    /// While somebody holds an old snapshot, PostgreSQL keeps every row and index entry that was deleted
    /// since, and a look from the low end of an index walks over all of them: over millions in an hour.
    private struct Floor<Value: Sendable>: Sendable {
        var value: Value
        /// Then it is looked for from the beginning once, for what was passed over: a row that another
        /// process had locked, or one that was written by a clock far behind.
        var until: ContinuousClock.Instant
    }

    private static let floorLife: Duration = .seconds(3_600)

    private struct State {
        var markFloor: Floor<Int64>?
        var pushFloor: Floor<UnixTime>?
        /// The origin behind which the next claim of a class begins.
        var cursors: [Cursor: Digest16] = [:]
        /// How far the server's clock may be believed.
        var serverClock = ServerClock()
        /// Server processes of connections that ended while something was under way.
        var lost: Set<Backend> = []
        var threads = 0
        var ended: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func serverClock<Value>(_ change: (inout ServerClock) -> Value) -> Value {
        state.withLock { change(&$0.serverClock) }
    }

    init(
        owner: Digest16, limits: PostgresLimits, connector: PostgresConnector, world: World, journal: Journal
    ) {
        self.owner = owner
        self.limits = limits
        self.connector = connector
        self.world = world
        self.journal = journal
        queue = WorkQueue(limits: limits)
        counts = OwedCounts(limits: limits)
    }

    var clockAhead: Int64 { limits.clockAhead().wholeMilliseconds }

    func cursor(_ cursor: Cursor) -> Digest16 {
        state.withLock { $0.cursors[cursor] ?? Digest16(high: 0, low: 0) }
    }

    func setCursor(_ cursor: Cursor, to origin: Digest16) {
        state.withLock { $0.cursors[cursor] = origin }
    }

    // MARK: floors

    private func standing<Value>(_ floor: Floor<Value>?) -> Value? {
        floor.flatMap { $0.until > world.instant() ? $0.value : nil }
    }

    private func raised<Value>(_ floor: Floor<Value>?, to value: Value) -> Floor<Value> {
        let now = world.instant()
        let until = floor.flatMap { $0.until > now ? $0.until : nil } ?? now + Self.floorLife
        return Floor(value: value, until: until)
    }

    /// The first minute that may have a mark past its time.
    var firstMarkMinute: Int64 { state.withLock { standing($0.markFloor) } ?? Int64(Int32.min) }

    func noteMarks(dropped minute: Int64) {
        state.withLock { $0.markFloor = raised($0.markFloor, to: minute) }
    }

    /// No owed push has an older id.
    var firstPushID: PushID {
        PushID(at: state.withLock { standing($0.pushFloor) } ?? UnixTime(milliseconds: 0), random: 0, 0)
    }

    /// Clocks of relays may be this far apart, and one that is behind may accept a push with an older id.
    private static let drift = Duration.seconds(60)

    func notePushes(oldest time: UnixTime) {
        state.withLock { $0.pushFloor = raised($0.pushFloor, to: time - Self.drift) }
    }

    // MARK: lost connections

    /// Lost connections whose server processes are remembered: a dozen times as many as there are at once.
    private static let lostAtMost = 64

    /// A transaction behind it may still commit, or hold a lock.
    func lose(_ backend: Backend) {
        state.withLock { state in
            if state.lost.count < Self.lostAtMost { state.lost.insert(backend) }
        }
    }

    /// Ends what may still be under way behind lost connections, and waits until it is gone.
    ///
    /// - Throws: `.unavailable` when a process does not end in time.
    func endLost(_ session: PostgresSession) throws(PostgresFault) {
        let lost = state.withLock { Array($0.lost) }
        guard !lost.isEmpty else { return }
        // A process ends in milliseconds unless its disk stalls.
        for round in 0..<50 {
            let left = try session.run(
                [
                    Query(PostgresSQL.endLostBackends) { query in
                        query.add(int64s: lost.map(\.pid))
                        query.add(int64s: lost.map(\.startedAt))
                    }
                ], commits: false)[0]
            if try left.int(0, 0) == 0 {
                state.withLock { $0.lost.subtract(lost) }
                return
            }
            Pause.milliseconds(min(100, 2 << Int32(min(round, 8))))
        }
        throw .store(StoreError(.unavailable))
    }

    // MARK: threads

    func start() {
        state.withLock { $0.threads = limits.connections }
        for _ in 0..<limits.connections {
            let thread = Thread { [self] in
                Connection(self).run()
                ended()
            }
            thread.name = "postgres"
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    private func ended() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            defer { state.ended = [] }
            return state.ended
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until every thread has ended: calls under way have their own bounds.
    func untilEnded() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.threads == 0 { return true }
                state.ended.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}

/// A thread of ours that has nothing to do for a moment.
enum Pause {
    static func milliseconds(_ count: Int32) { _ = poll(nil, 0, count) }
}

/// One connection and its thread: takes work, runs it, and comes back after the connection was lost.
struct Connection {
    private let core: PostgresCore

    init(_ core: PostgresCore) { self.core = core }

    func run() {
        var failures = 0
        var wasConnected = false
        while !core.queue.isOver {
            do {
                let session = try core.connector.connect {
                    core.queue.expire()
                    return core.queue.isOver
                }
                if wasConnected || failures > 0 { core.journal.note("database connection is back") }
                (failures, wasConnected) = (0, true)
                serve(session)
            } catch {
                failures += 1
                if failures == 1 {
                    core.journal.note(
                        "database cannot be reached", [.code: ErrorCode(error)], level: .warning)
                }
                backOff(failures)
            }
        }
    }

    /// Doubles, with jitter: several processes must not come back at one moment.
    private func backOff(_ failures: Int) {
        let first = core.limits.reconnectAfter.wholeMilliseconds
        let most = core.limits.reconnectAtMost.wholeMilliseconds
        let span = min(most, first << Int64(min(failures - 1, 16)))
        let end = ContinuousClock.now + .milliseconds(span / 2 + core.world.random(below: span / 2 + 1))
        while ContinuousClock.now < end, !core.queue.isOver {
            core.queue.expire()
            Pause.milliseconds(50)
        }
    }

    private func serve(_ session: PostgresSession) {
        // Locks of a transaction that nobody will end would hold up everybody. Reclaiming insists; here the
        // next connection tries again.
        do { try core.endLost(session) } catch { if session.isBroken { return } }
        while true {
            core.queue.expire()
            // Work that is taken from a connection that has ended meanwhile goes back unsent.
            guard let (jobs, kind) = core.queue.take() else {
                if core.queue.isOver || !session.isAlive { return }
                continue
            }
            defer { core.queue.finish(kind) }
            guard session.isAlive else {
                core.queue.putBack(jobs, kind)
                return
            }
            Batch(core: core, jobs: jobs, kind: kind).run(session)
            if session.isBroken { return }
        }
    }
}

/// Calls that were taken together.
struct Batch {
    let core: PostgresCore
    let jobs: [Job]
    let kind: WorkQueue.Kind

    /// Runs them, and answers each.
    func run(_ session: PostgresSession) {
        // Ends: each round gives up, or is one of a few.
        for round in 0...core.limits.retries {
            do {
                for answer in try perform(session) { answer() }
                return
            } catch .refused(let state) where state.mayPass && round < core.limits.retries {
                Pause.milliseconds(Int32(core.world.random(below: 10 << Int64(round))))
            } catch .refused(let state) where state.blamesValues && jobs.count > 1 {
                // One of them; the others need not suffer for it.
                for job in jobs { Batch(core: core, jobs: [job], kind: kind).run(session) }
                return
            } catch {
                return fail(error, session)
            }
        }
    }

    private func fail(_ fault: PostgresFault, _ session: PostgresSession) {
        switch fault {
        case .lost(let mayStand):
            if session.isBroken { core.lose(session.facts.backend) }
            guard mayStand else { return core.queue.putBack(jobs, kind) }
            core.counts.doubt()
        case .refused(let state):
            // A server that was demoted while we were connected: another host may be the primary now.
            if state.text == "25006" { session.abandon() }
        case .store: break
        }
        for job in jobs { job.fail(fault.error) }
    }

    private func perform(_ session: PostgresSession) throws(PostgresFault) -> [@Sendable () -> Void] {
        switch kind {
        case .find: return try core.find(jobs, session)
        case .accept: return try core.accept(jobs, session)
        case .change: return try core.change(jobs, session)
        case .settle: return try core.settle(jobs, session)
        case .lease, .read, .bulk:
            guard case .single(let run) = jobs[0].work else { return [] }
            return [try run(session)]
        }
    }
}
