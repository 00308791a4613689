import Foundation
package import PushModel
import ServiceLifecycle

/// The engine on a PostgreSQL database that any number of processes share (decision 0034).
///
/// A few connections, each owned by one thread. Calls wait in one queue, and whichever thread comes takes all
/// of one kind that fit into a statement: what arrives while one commit waits for the disk, or for a standby,
/// is the next commit. A caller that is cancelled waits on, for its write may be under way; every wait is
/// bounded by ``PostgresLimits``.
///
/// What a lost connection leaves behind is said as it is: `uncertain` when a commit had been sent,
/// `unavailable` when nothing can stand.
package final class PostgresStore: Engine {
    let core: PostgresCore
    /// False for a guest in a database without a store: every question fails.
    package let hasSchema: Bool

    /// Opens the database and brings its schema up to this program's.
    ///
    /// - Parameter owner: this process; until its lease ends, what it accepts is nobody else's.
    /// - Parameter isGuest: the schema is looked at and left as it is.
    /// - Throws: `.denied`, `.unavailable`, `.notDurable`, `.newerSchema`, `.halfMigrated`, `.corrupt`.
    package init(
        _ address: PostgresAddress, owner: OwnerID, limits: PostgresLimits = PostgresLimits(),
        synchronous: Synchronous = .full, world: World, journal: Journal = .silent,
        isGuest: Bool = false
    ) async throws(StoreError) {
        let connector = PostgresConnector(
            address: address, limits: limits, purpose: isGuest ? .inspection : .engine(synchronous))
        core = PostgresCore(
            owner: owner.value, limits: limits, connector: connector, world: world, journal: journal)
        let opened = await Self.open(core, isGuest: isGuest)
        hasSchema = try opened.get()
        core.start()
    }

    deinit { core.queue.close() }

    /// On a thread of its own: opening waits, and may wait long.
    private static func open(_ core: PostgresCore, isGuest: Bool) async -> Result<Bool, StoreError> {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                do throws(StoreError) {
                    let session = try core.connector.connectPatiently()
                    var isThere = true
                    do throws(PostgresFault) {
                        if isGuest {
                            isThere = try PostgresSchema.stands(session)
                        } else {
                            try PostgresSchema.migrate(session, limits: core.limits)
                        }
                        if isThere { try core.recount(session) }
                    } catch {
                        throw error.error.code == .uncertain ? StoreError(.unavailable) : error.error
                    }
                    continuation.resume(returning: .success(isThere))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            thread.name = "postgres"
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    /// Sweeps marks and dead owners, paces vacuums, and forgets what was deleted, until cancelled or stopped.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var plan = ForgettingPlan(now: self.core.world.instant(), limits: self.core.limits)
            var pace = VacuumPace()
            while !Task.isCancelled {
                let now = self.core.world.instant()
                do { try await self.core.world.sleep(now + self.core.limits.sweepEvery) } catch { break }
                // A database that is away is told of by those who need it; the next sweep does this work.
                do { try await self.sweep() } catch { continue }
                await self.look(by: &pace)
                await self.forget(by: &plan)
            }
        }
    }

    /// One look at the tables of pushes.
    func keepPace(_ pace: VacuumPace) async throws(StoreError) -> VacuumPace {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.keepPace(pace, session)
        }
    }

    private func look(by pace: inout VacuumPace) async {
        do { pace = try await keepPace(pace) } catch {
            core.journal.note("vacuum not paced", [.code: ErrorCode(error)], level: .warning)
        }
    }

    private func forget(by plan: inout ForgettingPlan) async {
        let (deletions, began) = (core.counts.deletions, core.world.instant())
        guard let scope = plan.due(deletions, now: began, limits: core.limits) else { return }
        var found: PostgresForgotten?
        do { found = try await forgetNow(records: scope == .everything) } catch {
            core.journal.note("deleted rows not forgotten", [.code: ErrorCode(error)], level: .warning)
        }
        if found == .tooLarge { core.journal.note("deleted rows not forgotten: a table is too large") }
        plan.tried(
            found, deletions: deletions, began: began, now: core.world.instant(), limits: core.limits)
    }

    /// Writes small tables anew and moves the log on, so that no deleted byte is in either.
    @discardableResult
    package func forgetNow(records: Bool = true) async throws(StoreError) -> PostgresForgotten {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.forgetNow(records: records, session)
        }
    }

    /// Removes what no longer counts. Bounded: each round removes as much as it may, or is the last.
    package func sweep() async throws(StoreError) {
        let core = core
        while try await core.single(.bulk, core.dropMarks) >= core.limits.marksPerSweep {
            if Task.isCancelled { return }
        }
        try await core.single(.bulk, core.buryOwners)
    }

    /// Gives up the lease, so that what is still owed is free at once, and closes the connections.
    ///
    /// Operations after it fail as `unavailable`. It waits for those under way, as long as they may take.
    package func close() async {
        // When the database is away the lease ends by itself.
        do { try await core.single(.lease, patience: core.limits.closing, core.giveUp) } catch {
            core.journal.note("lease not given up", [.code: ErrorCode(error)], level: .warning)
        }
        core.queue.close()
        await core.untilEnded()
    }
}

extension PostgresConnector {
    /// Connects, waiting for a server that is just starting or being replaced.
    func connectPatiently() throws(StoreError) -> PostgresSession {
        let end = ContinuousClock.now + limits.openingPatience
        // Ends: each round connects, finds a fault that time does not mend, or comes nearer to the end.
        while true {
            do { return try connect { ContinuousClock.now > end } } catch {
                guard error.code == .unavailable, ContinuousClock.now < end else { throw error }
            }
            Pause.milliseconds(200)
        }
    }
}

extension PostgresCore {
    /// Runs one call by itself.
    func single<Value: Sendable>(
        _ kind: WorkQueue.Kind, patience: Duration? = nil,
        _ run: @escaping @Sendable (PostgresSession) throws(PostgresFault) -> Value
    ) async throws(StoreError) -> Value {
        let outcome: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            let work = Job.Work.single { session throws(PostgresFault) in
                let value = try run(session)
                return { continuation.resume(returning: .success(value)) }
            }
            add(work, kind, patience: patience) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }

    func add(
        _ work: Job.Work, _ kind: WorkQueue.Kind, rows: Int = 1, bytes: Int = 0, patience: Duration? = nil,
        fail: @escaping @Sendable (StoreError) -> Void
    ) {
        queue.add(
            Job(work, rows: rows, bytes: bytes, patience: patience ?? limits.patience, fail: fail), kind)
    }

    /// A call that changes records.
    func change(
        _ call: @Sendable (@escaping @Sendable (ChangeCall.Answer) -> Void) -> ChangeCall
    ) async throws(StoreError) -> ChangeCall.Answer {
        let outcome: Result<ChangeCall.Answer, StoreError> = await withCheckedContinuation { continuation in
            let call = call { continuation.resume(returning: .success($0)) }
            let rows = max(1, call.runs.count + call.steps.count + call.pushes.count)
            add(.change(call), .change, rows: rows) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }
}

extension PostgresStore {
    package func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        let core = core
        let outcome: Result<[StoredRecord?], StoreError> = await withCheckedContinuation { continuation in
            core.add(
                .find(keys: keys, now: now) { continuation.resume(returning: .success($0)) }, .find,
                rows: keys.count
            ) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            try core.page(index, after: after, limit: limit, now: now, session)
        }
    }

    package func tally(_ owners: [Digest16]) async throws(StoreError) -> [RecordTally] {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            try core.tally(owners, session)
        }
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        guard !changes.isEmpty else { return .committed }
        let runs = ChangeCall.runs(changes)
        let answer = try await core.change { ChangeCall(runs: runs, now: now, answer: $0) }
        if case .refused(let index) = answer { return .refused(index: index) }
        return .committed
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await remove(.purge(before: before, limit: limit), now: before)
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await remove(.forget(owner: owner, limit: limit), now: .distantPast)
    }

    private func remove(_ removal: ChangeCall.Removal, now: UnixTime) async throws(StoreError) -> Int {
        let answer = try await core.change { ChangeCall(removal: removal, now: now, answer: $0) }
        guard case .removed(let count) = answer else { throw StoreError(.corrupt) }
        return count
    }

    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        if pushes.isEmpty {
            return switch try await apply(changes, now: now) {
            case .committed: .committed([])
            case .refused(let index): .refused(index: index)
            }
        }
        let bytes = pushes.reduce(0) { $0 + $1.sealed.count }
        guard core.counts.reserve(pushes) else { throw StoreError(.full) }
        do throws(StoreError) {
            let accepted = try await write(pushes, bytes, changes, now: now)
            giveBack(pushes, accepted)
            return accepted
        } catch {
            // What may stand is counted until the doubt is settled.
            if error.code != .uncertain { core.counts.release(pushes) }
            throw error
        }
    }

    private func write(
        _ pushes: [StoredPush], _ bytes: Int, _ changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        guard changes.isEmpty else {
            let runs = ChangeCall.runs(changes)
            let answer = try await core.change {
                ChangeCall(pushes: pushes, runs: runs, now: now, answer: $0)
            }
            switch answer {
            case .refused(let index): return .refused(index: index)
            case .committed(let admissions): return .committed(admissions)
            case .settled, .removed: throw StoreError(.corrupt)
            }
        }
        let core = core
        let outcome: Result<[StoredAdmission], StoreError> = await withCheckedContinuation { continuation in
            core.add(
                .accept(pushes: pushes) { continuation.resume(returning: .success($0)) }, .accept,
                rows: pushes.count, bytes: bytes
            ) { continuation.resume(returning: .failure($0)) }
        }
        return .committed(try outcome.get())
    }

    /// Room that was reserved for what turned out to be there already, or was refused.
    private func giveBack(_ pushes: [StoredPush], _ accepted: StoredAccepted) {
        switch accepted {
        case .refused: core.counts.release(pushes)
        case .committed(let admissions):
            core.counts.release(
                zip(pushes, admissions).compactMap { push, admission in
                    guard case .repeated = admission else { return nil }
                    return push
                })
        }
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        guard feedback.isEmpty else {
            let runs = ChangeCall.runs(feedback)
            let answer = try await core.change {
                ChangeCall(steps: steps, runs: runs, isEach: true, now: now, answer: $0)
            }
            guard case .settled(let counted) = answer else { throw StoreError(.corrupt) }
            return counted
        }
        guard !steps.isEmpty else { return [] }
        let core = core
        let outcome: Result<[Bool], StoreError> = await withCheckedContinuation { continuation in
            core.add(
                .settle(steps: steps, now: now) { continuation.resume(returning: .success($0)) }, .settle,
                rows: steps.count
            ) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.claim(lane, due: due, limit: limit, classes: classes, session)
        }
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            try core.nextDue(lane, session)
        }
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.endCustody(before: before, limit: limit, session)
        }
    }

    package func renew(for span: Duration) async throws(StoreError) {
        try await core.single(.lease) { [core] session throws(PostgresFault) in
            try core.renew(for: span, session)
        }
    }

    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.takeOver(lanes, limit: limit, session)
        }
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.letGo(besides: lanes, limit: limit, session)
        }
    }

    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await core.single(.lease) { [core] session throws(PostgresFault) in
            try core.enrol(in: groups, for: span, session)
        }
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.reclaim(limit: limit, session)
        }
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.setAside(pushes, session)
        }
    }

    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.lastTime(step, session)
        }
    }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await core.single(.read) { [core] session throws(PostgresFault) in try core.load(session) }
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await core.single(.read) { session throws(PostgresFault) in
            let rows = try session.run([Query(PostgresSQL.setting) { $0.add(name) }], commits: false)[0]
            return rows.count == 0 ? nil : rows.bytes(0, 0)
        }
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await core.single(.bulk) { session throws(PostgresFault) in
            let put = Query(PostgresSQL.putSetting) { query in
                query.add(name)
                query.add(value)
            }
            let rows = try session.run(
                [put, Query(PostgresSQL.setting) { $0.add(name) }], commits: true)[1]
            guard rows.count == 1 else { throw .store(StoreError(.corrupt)) }
            return rows.bytes(0, 0)
        }
    }
}

extension PostgresStore: OwedLookup {
    package func owed(_ id: PushID) async throws(StoreError) -> StoredPush? {
        try await core.single(.read) { session throws(PostgresFault) in
            let rows = try session.run([Query(PostgresSQL.owed) { $0.add(id.value) }], commits: false)[0]
            guard rows.count == 1 else { return nil }
            guard let level = PushClass(rawValue: UInt8(truncatingIfNeeded: try rows.int(0, 1))) else {
                throw .store(StoreError(.corrupt))
            }
            return StoredPush(
                row: PostgresCore.row(of: id), id: id, lane: rows.text(0, 0), pushClass: level,
                origin: Digest16(high: 0, low: 0), record: nil, touchedAt: try rows.time(0, 2),
                notBefore: try rows.time(0, 3), custodyEnds: try rows.time(0, 4),
                attempt: Int(try rows.int(0, 5)), epoch: try rows.int(0, 6), parked: rows.bool(0, 7),
                mark: nil, sealed: [])
        }
    }

    /// Ids begin with the time at which they were given.
    package func oldest() async throws(StoreError) -> PushID? {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            let asked = core.world.now()
            let query = Query(PostgresSQL.oldest) { $0.add(core.firstPushID.value) }
            let rows = try session.run([query], commits: false)[0]
            let oldest = rows.count == 0 ? nil : PushID(try rows.digest(0, 0))
            core.notePushes(oldest: oldest?.acceptedAt ?? asked)
            return oldest
        }
    }
}
