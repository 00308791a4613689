import Dispatch
import GRDB
import GRDBSQLite
import PushModel
import Synchronization

/// Group commit: waiting operations join one transaction, and each returns when it is on the disk.
///
/// There is no task: the first operation starts a drain on GRDB's writer queue, and operations that arrive
/// while one commit waits for the disk form the next commit. Operations for which nobody waits (settling) do
/// not start one; they join the next, for at most ``SQLiteLimits/lazyWait``, since a commit costs the disk
/// the same for one row or fifty.
final class CommitQueue: Sendable {
    /// One operation. `run` works inside the transaction and returns what to do once it is committed; it may
    /// run again, when a neighbour's fault undoes it.
    struct Job: Sendable {
        let run: @Sendable (SQLiteWriter, Database) throws -> (@Sendable () -> Void)
        let fail: @Sendable (StoreError) -> Void
        /// Only bookkeeping waits for it: it joins the next commit, or starts one after
        /// ``SQLiteLimits/lazyWait``.
        var isLazy = false
        var size = Size.small
    }

    /// What to do once a job's operation is committed. A structure: a list wraps a bare function anew, in a
    /// block of memory.
    private struct Answer {
        let tell: @Sendable () -> Void
    }

    /// How much an operation may do. A call that comes in waits for the commit under way and for its own, so
    /// one commit must never hold the rows of a settlement, a claim and a sweep together.
    enum Size: Sendable {
        /// What one request brings.
        case small
        /// Up to a thousand rows: one to a commit.
        case bulk
    }

    private struct State {
        var small: [Job] = []
        /// Few: one settler, one claim of each lane, one sweep.
        var bulk: [Job] = []
        var waiting: Int { small.count + bulk.count }
        var isDraining = false
        var isClosed = false
        var commits = 0
        /// Jobs that will not wait for company.
        var urgent = 0
        /// A timer is set for the moment when those that wait for company have waited long enough.
        var isLazyTimed = false
        var isLazyDue = false
        var finds: FindQueue?
        /// Slots of records that cannot be read, until they have been set aside.
        var unreadable: Set<Int64> = []
    }

    private let pool: DatabasePool
    private let limits: SQLiteLimits
    private let ended: EndedPushes
    private let journal: Journal
    private let state = Mutex(State())
    /// Rung with each batch.
    let batchBegun = Bell()
    // Safety: `writer` is touched on GRDB's serial writer queue alone.
    nonisolated(unsafe) private let writer: SQLiteWriter

    init(
        pool: DatabasePool, writer: SQLiteWriter, limits: SQLiteLimits, ended: EndedPushes,
        journal: Journal = .silent
    ) {
        self.ended = ended
        self.journal = journal
        self.pool = pool
        self.writer = writer
        self.limits = limits
    }

    /// Operations that wait for the next commit.
    var waiting: Int { state.withLock(\.waiting) }

    /// Batches so far; a quiet log is one that has not risen.
    var commits: Int { state.withLock(\.commits) }

    func close() { state.withLock { $0.isClosed = true } }

    /// Lets finds be answered on the same queue: in the transaction of the next commit, before its jobs, or
    /// in one of their own when nothing is to be committed.
    func joins(_ finds: FindQueue?) { state.withLock { $0.finds = finds } }

    /// Waits until the operation stands on the disk.
    ///
    /// - Parameter lazily: nobody waits for it, so it joins the next commit instead of starting one.
    func submit<Value: Sendable>(
        _ size: Size = .small, lazily isLazy: Bool = false,
        _ operation: @escaping @Sendable (SQLiteWriter, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        // Resumed once: `add` refuses a job or lists it, and whoever takes it off the list under the lock
        // calls either the answer of its last run or `fail`, and neither again.
        let outcome = await withLockedContinuation(of: Result<Value, StoreError>.self) { continuation in
            add(
                Job(
                    run: { writer, db in
                        do {
                            let value = try operation(writer, db)
                            return { continuation.resume(returning: .success(value)) }
                        } catch let error as StoreError where error.code == .full {
                            // The fault was found before anything was written: the other jobs need not start
                            // again.
                            return { continuation.resume(returning: .failure(error)) }
                        }
                    }, fail: { continuation.resume(returning: .failure($0)) }, isLazy: isLazy, size: size))
        }
        return try outcome.get()
    }

    /// Records that cannot be read are set aside with a later commit; nobody waits for it.
    func setAside(_ slots: [Int64]) {
        guard !slots.isEmpty else { return }
        let isFirst = state.withLock { state in
            defer {
                let room = limits.unreadableAtOnce - state.unreadable.count
                state.unreadable.formUnion(slots.prefix(max(0, room)))
            }
            return state.unreadable.isEmpty
        }
        guard isFirst else { return }
        let job = Job(
            run: { [self] writer, db in
                let slots = state.withLock(\.unreadable)
                let count = try writer.setAside(slots: slots, db)
                return { [self] in
                    // With those that came since: they are met again, and then ask for a commit.
                    state.withLock { $0.unreadable = [] }
                    if count > 0 { journal.setAside(count) }
                }
            },
            // They are met again.
            fail: { [self] _ in state.withLock { $0.unreadable = [] } }, isLazy: true, size: .bulk)
        add(job)
    }

    private func add(_ job: Job) {
        enum Next { case refuse, wait, wake, time }
        let next = state.withLock { state -> Next in
            guard !state.isClosed, state.waiting < limits.waitingJobs else { return .refuse }
            switch job.size {
            case .small: state.small.append(job)
            case .bulk: state.bulk.append(job)
            }
            if !job.isLazy {
                state.urgent += 1
                return state.isDraining ? .wait : .wake
            }
            defer { state.isLazyTimed = true }
            return state.isLazyTimed ? .wait : .time
        }
        switch next {
        case .refuse: job.fail(StoreError(.unavailable))
        case .wait: break
        case .wake: _ = wake()
        case .time:
            DispatchQueue.global().asyncAfter(deadline: .now() + limits.lazyWait) {
                self.state.withLock { state in
                    state.isLazyTimed = false
                    state.isLazyDue = state.waiting > 0
                }
                _ = self.wake()
            }
        }
    }

    /// Starts a drain unless one is under way; false when the store is closed.
    func wake() -> Bool {
        let (isOpen, starts) = state.withLock { state -> (Bool, Bool) in
            guard !state.isClosed || state.isDraining || state.waiting > 0 else { return (false, false) }
            defer { state.isDraining = true }
            return (true, !state.isDraining)
        }
        if starts { pool.asyncWriteWithoutTransaction { self.drain($0) } }
        return isOpen
    }

    /// Runs on the writer queue until only jobs are left that wait for company.
    private func drain(_ db: Database) {
        while true {
            let (jobs, finds, isOver) = state.withLock { state -> ([Job], FindQueue?, Bool) in
                guard state.urgent > 0 || state.isLazyDue else {
                    state.isDraining = !(state.finds?.isEmpty ?? true)
                    return ([], state.finds, !state.isDraining)
                }
                var batch = Array(state.small.prefix(limits.jobsPerCommit))
                state.small.removeFirst(batch.count)
                if !state.bulk.isEmpty { batch.append(state.bulk.removeFirst()) }
                for job in batch where !job.isLazy { state.urgent -= 1 }
                if state.waiting == 0 { state.isLazyDue = false }
                state.commits += 1
                return (batch, state.finds, false)
            }
            if isOver { return }
            if jobs.isEmpty {
                finds?.answer(db, &writer.frequent)
            } else {
                batchBegun.ring()
                commit(jobs, finds, db)
            }
        }
    }

    private func commit(_ jobs: [Job], _ finds: FindQueue?, _ db: Database) {
        do {
            // One transaction for both: each takes locks of the file and gives them back.
            let answers = try transaction(jobs, db, after: { finds?.answer(db, &writer.frequent) }) {
                try $0.run(writer, db)
            }
            for answer in answers { answer.tell() }
        } catch {
            // It may not even have begun, and finds need no lock on writing.
            finds?.answer(db, &writer.frequent)
            if jobs.count > 1 { replay(jobs, db) } else { jobs[0].fail(SQLFault.translate(error)) }
        }
    }

    /// One of them failed, and undid its neighbours. They run again together, each behind a savepoint, so
    /// that only the faulty one fails and the others cost one more commit, not one each: with five hundred
    /// waiting and a slow disk that is the difference between a hiccup and a minute.
    private func replay(_ jobs: [Job], _ db: Database) {
        var left = jobs
        var fault = StoreError(.unavailable)
        for _ in 0..<limits.replays where !left.isEmpty {
            var place = 0
            var torn: Int?
            do {
                let answers = try transaction(left, db, after: {}) { job in
                    defer { place += 1 }
                    torn = place
                    let answer = try isolated(job, db)
                    torn = nil
                    return answer
                }
                for answer in answers { answer.tell() }
                return
            } catch {
                fault = SQLFault.translate(error)
                // Some faults, such as a full disk, end the whole transaction: the job that met the fault is
                // left out.
                guard let torn else { break }
                left.remove(at: torn).fail(fault)
            }
        }
        for job in left { job.fail(fault) }
    }

    /// Runs a job behind a savepoint, so that its fault concerns only itself.
    private func isolated(_ job: Job, _ db: Database) throws -> (@Sendable () -> Void) {
        let before = writer.moment
        do {
            var answer: (@Sendable () -> Void)?
            try db.inSavepoint {
                answer = try job.run(writer, db)
                return .commit
            }
            return answer ?? {}
        } catch  where db.isInsideTransaction {
            writer.undo(to: before)
            let fault = SQLFault.translate(error)
            return { job.fail(fault) }
        }
    }

    /// - Parameter first: reads before any job has changed something.
    private func transaction(
        _ jobs: [Job], _ db: Database, after first: () -> Void,
        of run: (Job) throws -> (@Sendable () -> Void)
    ) throws -> [Answer] {
        writer.begin()
        do {
            var answers: [Answer] = []
            answers.reserveCapacity(jobs.count)
            try db.transact(.immediate) {
                first()
                // A fault of the disk in a reading ends the transaction as well, and then no job may run.
                guard db.isInsideTransaction else { throw SQLFault(code: SQLITE_ABORT) }
                for job in jobs { answers.append(Answer(tell: try run(job))) }
            }
            // Before any caller learns that it stands.
            ended.tell(writer.committed())
            if writer.memory.unreadable > 0 {
                journal.note(
                    "owed pushes cannot be read and are set aside",
                    [.count: writer.memory.unreadable, .code: ErrorCode(StoreError(.corrupt))], level: .error)
                writer.memory.unreadable = 0
            }
            return answers
        } catch {
            writer.undone()
            throw error
        }
    }
}

extension Journal {
    func setAside(_ count: Int) {
        note(
            "records cannot be read and are set aside",
            [.count: count, .code: ErrorCode(StoreError(.corrupt))], level: .error)
    }
}
