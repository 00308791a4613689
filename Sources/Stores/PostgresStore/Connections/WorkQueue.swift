import Foundation
import PushModel

/// The calls that wait for a connection, and which connection may take them.
///
/// The connection that takes calls joins those of one kind. No kind may use all connections, and the kinds
/// take turns, so that a sweep or a flood of one kind does not delay the others.
final class WorkQueue: @unchecked Sendable {
    // Safety: all state is touched under `guarded` alone.

    enum Kind: Int, CaseIterable {
        /// Renewing the lease: before everything else.
        case lease
        case find, accept
        /// Changes of records: one transaction at a time, because each waits for the one before it anyhow.
        case change
        /// Without feedback: rows of pushes alone.
        case settle
        /// Small questions.
        case read
        /// Up to a thousand rows each: claims, sweeps.
        case bulk
    }

    private let guarded = NSCondition()
    private var waiting: [[Job]] = Kind.allCases.map { _ in [] }
    private var heads = Kind.allCases.map { _ in 0 }
    private var underWay = Kind.allCases.map { _ in 0 }
    private var turn = 0
    private var isClosed = false
    private let limits: PostgresLimits
    private let atOnce: [Int]

    init(limits: PostgresLimits) {
        self.limits = limits
        let half = max(1, limits.connections / 2)
        atOnce = Kind.allCases.map { kind in
            switch kind {
            case .lease, .change: 1
            case .find, .accept, .settle, .read, .bulk: half
            }
        }
    }

    /// Adds a call, which will get an answer in any case.
    func add(_ job: Job, _ kind: Kind) {
        guarded.lock()
        let count = waiting[kind.rawValue].count - heads[kind.rawValue]
        let isTaken = !isClosed && count < limits.waitingJobs
        if isTaken { waiting[kind.rawValue].append(job) }
        guarded.signal()
        guarded.unlock()
        if !isTaken { job.fail(StoreError(.unavailable)) }
    }

    /// Puts calls back in front: their connection was lost before anything could be committed.
    func putBack(_ jobs: [Job], _ kind: Kind) {
        guarded.lock()
        let isTaken = !isClosed
        if isTaken {
            waiting[kind.rawValue].replaceSubrange(..<heads[kind.rawValue], with: jobs)
            heads[kind.rawValue] = 0
        }
        guarded.signal()
        guarded.unlock()
        if !isTaken { for job in jobs { job.fail(StoreError(.unavailable)) } }
    }

    /// Waits for work, a second at most; what is taken must be ended with `finish`.
    func take() -> (jobs: [Job], kind: Kind)? {
        guarded.lock()
        defer { guarded.unlock() }
        if let found = next() { return found }
        if isClosed { return nil }
        _ = guarded.wait(until: Date(timeIntervalSinceNow: idleSeconds))
        return next()
    }

    func finish(_ kind: Kind) {
        guarded.lock()
        underWay[kind.rawValue] -= 1
        // Other calls of this kind may wait for this only.
        guarded.signal()
        guarded.unlock()
    }

    /// How long a thread that finds nothing to do waits: until settlements need not wait for company any
    /// longer.
    private var idleSeconds: Double {
        let index = Kind.settle.rawValue
        guard heads[index] < waiting[index].count, underWay[index] < atOnce[index] else { return 1 }
        let left = waiting[index][heads[index]].since + limits.lazyWait - ContinuousClock.now
        return min(
            1, max(0.000_1, Double(left.components.attoseconds) / 1e18 + Double(left.components.seconds)))
    }

    /// Only bookkeeping waits for a settlement, so it waits for company: each commit that is saved is one for
    /// the calls that do wait.
    private func isReady(_ index: Int) -> Bool {
        guard heads[index] < waiting[index].count, underWay[index] < atOnce[index] else { return false }
        guard index == Kind.settle.rawValue, !isClosed else { return true }
        let first = waiting[index][heads[index]]
        return first.rows >= limits.lazyRows || first.since + limits.lazyWait <= ContinuousClock.now
    }

    private func next() -> (jobs: [Job], kind: Kind)? {
        let count = Kind.allCases.count
        for step in 0..<count {
            // The lease first, then the others in turn.
            let index = step == 0 ? 0 : 1 + (turn + step - 1) % (count - 1)
            guard let kind = Kind(rawValue: index), isReady(index) else { continue }
            if step > 0 { turn = index % (count - 1) }
            let jobs = batch(index)
            underWay[index] += 1
            // The rest, or another kind, may be for the next thread, and one thread must watch the deadline
            // of settlements.
            let settling = Kind.settle.rawValue
            if hasWork || heads[settling] < waiting[settling].count { guarded.signal() }
            return (jobs, kind)
        }
        return nil
    }

    private var hasWork: Bool { waiting.indices.contains(where: isReady) }

    /// The calls at the head that go together.
    private func batch(_ index: Int) -> [Job] {
        var jobs: [Job] = []
        var held = Batching()
        while heads[index] < waiting[index].count, jobs.count < limits.jobsPerBatch {
            let job = waiting[index][heads[index]]
            guard held.admits(job, limits: limits) else { break }
            jobs.append(job)
            heads[index] += 1
            if job.isAlone { break }
        }
        if heads[index] == waiting[index].count {
            waiting[index].removeAll(keepingCapacity: true)
            heads[index] = 0
        } else if heads[index] > 4_096 {
            waiting[index].removeFirst(heads[index])
            heads[index] = 0
        }
        return jobs
    }

    /// Ends calls that have waited too long. Every thread calls it, whatever else it waits for.
    func expire() {
        let now = ContinuousClock.now
        guarded.lock()
        var late: [Job] = []
        for index in waiting.indices {
            // In order of arrival, so the oldest stand in front.
            while heads[index] < waiting[index].count, waiting[index][heads[index]].deadline <= now {
                late.append(waiting[index][heads[index]])
                heads[index] += 1
            }
        }
        guarded.unlock()
        for job in late { job.fail(StoreError(.unavailable)) }
    }

    /// Takes no more calls; those that wait fail.
    func close() {
        guarded.lock()
        isClosed = true
        var left: [Job] = []
        for index in waiting.indices {
            left += waiting[index][heads[index]...]
            waiting[index] = []
            heads[index] = 0
        }
        guarded.broadcast()
        guarded.unlock()
        for job in left { job.fail(StoreError(.unavailable)) }
    }

    var isOver: Bool {
        guarded.lock()
        defer { guarded.unlock() }
        return isClosed
    }
}

/// One call that waits.
final class Job: Sendable {
    enum Work: Sendable {
        case find(keys: [Digest16], now: UnixTime, answer: @Sendable ([StoredRecord?]) -> Void)
        case accept(pushes: [StoredPush], answer: @Sendable ([StoredAdmission]) -> Void)
        case settle(steps: [StoredSettlement], now: UnixTime, answer: @Sendable ([Bool]) -> Void)
        case change(ChangeCall)
        /// Runs by itself.
        case single(@Sendable (PostgresSession) throws(PostgresFault) -> (@Sendable () -> Void))
    }

    let work: Work
    let fail: @Sendable (StoreError) -> Void
    /// When it came.
    let since = ContinuousClock.now
    let deadline: ContinuousClock.Instant
    /// Rows and bytes, as far as they count for joining.
    let rows: Int
    let bytes: Int

    init(
        _ work: Work, rows: Int = 1, bytes: Int = 0, patience: Duration,
        fail: @escaping @Sendable (StoreError) -> Void
    ) {
        self.work = work
        self.rows = rows
        self.bytes = bytes
        self.fail = fail
        deadline = since + patience
    }

    /// Whether it is never joined with others.
    var isAlone: Bool {
        switch work {
        case .single: true
        case .change(let call): call.isAlone
        case .find, .accept, .settle: false
        }
    }
}

/// Which calls fit into one batch.
private struct Batching {
    private var rows = 0
    private var bytes = 0
    private var isEmpty = true
    private var marks: Set<Digest16> = []

    /// False when the call must wait for the next batch: because of its size, or because it has the mark of
    /// an earlier call of the batch and is a repeat of that.
    mutating func admits(_ job: Job, limits: PostgresLimits) -> Bool {
        let fits = rows + job.rows <= limits.rowsPerBatch && bytes + job.bytes <= limits.bytesPerBatch
        guard isEmpty || (!job.isAlone && fits) else { return false }
        if case .accept(let pushes, _) = job.work {
            let named = pushes.compactMap(\.mark)
            guard !named.contains(where: marks.contains) else { return false }
            marks.formUnion(named)
        }
        rows += job.rows
        bytes += job.bytes
        isEmpty = false
        return true
    }
}
