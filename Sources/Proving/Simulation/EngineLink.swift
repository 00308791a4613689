import PushModel
import Synchronization

/// The way of one process to its engine: a network that loses requests and answers, or a function call.
final class EngineLink: Sendable {
    /// What is broken on purpose, to see that it is found.
    struct Sabotage: OptionSet, Sendable {
        let rawValue: Int
        /// A push's mark is remembered beside the commit.
        static let marksApart = Sabotage(rawValue: 1)
        /// The store is told a twentieth of the span that the process counts on.
        static let shortLease = Sabotage(rawValue: 2)
        /// Rows of dead processes are given out, and are not the asker's own then.
        static let claimsOthers = Sabotage(rawValue: 4)
        /// A claim that meets a row which does not open fails, and keeps what it brought.
        static let losesClaims = Sabotage(rawValue: 8)
        /// What is over by the clock of a process is swept away with each look.
        static let trustsClocks = Sabotage(rawValue: 16)
        /// What is to be withdrawn is put aside for later.
        static let keepsWithdrawn = Sabotage(rawValue: 32)
        /// Changes that go with a withdrawal are not made.
        static let undoesNothing = Sabotage(rawValue: 64)
        /// What is learned of a push ends its registration as it stands.
        static let endsNewer = Sabotage(rawValue: 128)
        /// Nobody hears what has ended with its registration.
        static let keepsTheEnded = Sabotage(rawValue: 256)
    }

    /// What may be asked of a store, by what the relay asks it for.
    enum Kind: Int, Sendable, CaseIterable {
        case records, accept, settle, claim, nextDue, renew, enrol, sweep, reclaim, load, setting
    }

    /// What is wrong with the store, as one process sees it.
    struct Trouble: Sendable {
        /// Neither requests nor answers get through.
        var isCut = false
        /// Until then these are not answered.
        var hangsUntil = Duration.zero
        var hanging: Set<Kind> = []
        /// Percent of calls that fail: half of them are done all the same.
        var fails = 0
        /// Percent of claimed rows that have been changed, and will not open for anybody.
        var spoils = 0
        /// Percent of claimed rows that were sealed with a key which this process does not hold now.
        var locked = 0
    }

    private struct State {
        var trouble = Trouble()
        var marks: [Digest16: PushID] = [:]
    }

    private let engine: any Engine
    /// An engine of an owner that never lived.
    private let ghost: (any Engine)?
    private let scheduler: Scheduler
    private let database: SimulatedDatabase?
    private let ledger: PushLedger
    private let process: Int
    /// The process's own.
    private let clock: @Sendable () -> UnixTime
    private let sabotage: Sabotage
    private let deaf = EndedPushes()
    /// What a file's engine tells on its own thread is told on ours, once the call is back: two threads at
    /// work at once would make the run another one each time.
    private let relayed = EndedPushes()
    private let untold = Mutex<[PushID]>([])
    private let state = Mutex(State())

    /// - Parameter database: whose engine it is; `nil`: a file of this machine, which is called.
    init(
        _ engine: any Engine, _ scheduler: Scheduler, database: SimulatedDatabase?, ledger: PushLedger,
        process: Int, clock: @escaping @Sendable () -> UnixTime, sabotage: Sabotage
    ) {
        self.engine = engine
        ghost = database?.engine(of: OwnerID(Digest16(high: 1, low: 1)))
        self.scheduler = scheduler
        self.database = database
        self.ledger = ledger
        self.process = process
        self.clock = clock
        self.sabotage = sabotage
        guard database == nil else { return }
        engine.ended.hear { [weak self] pushes in self?.untold.withLock { $0 += pushes } }
    }

    private func tellEnded() {
        relayed.tell(
            untold.withLock { untold in
                defer { untold = [] }
                return untold
            })
    }

    func trouble(_ change: (inout Trouble) -> Void) {
        let trouble = state.withLock { state in
            change(&state.trouble)
            return state.trouble
        }
        ledger.happened("process \(process) \(trouble)")
    }

    /// Whether a call of that kind would not be answered now.
    func isHanging(_ kind: Kind) -> Bool {
        state.withLock { $0.trouble.hanging.contains(kind) && $0.trouble.hangsUntil > scheduler.elapsed }
    }

    private func call<Value: Sendable>(
        _ kind: Kind, _ operation: @Sendable (any Engine) async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let hangsFirst = isHanging(kind) && scheduler.chance(50)
        if hangsFirst { await hang(kind) }
        let fails = scheduler.chance(state.withLock(\.trouble.fails))
        if fails, scheduler.chance(50) { throw trouble(.unavailable) }
        do throws(StoreError) {
            let value = try await reach(operation)
            await hang(kind)
            if fails { throw StoreError(.uncertain) }
            return value
        } catch {
            throw trouble(error.code)
        }
    }

    private func trouble(_ code: StoreError.Code) -> StoreError {
        ledger.troubled(process)
        return StoreError(code)
    }

    private func hang(_ kind: Kind) async {
        while isHanging(kind) {
            let end = state.withLock(\.trouble.hangsUntil)
            ledger.troubled(process, until: end)
            // Cancelled: the call itself is not, so it ends when the store answers.
            let until = end - scheduler.elapsed
            await scheduler.pause(until...until)
            if Task.isCancelled { break }
        }
    }

    private func reach<Value: Sendable>(
        _ operation: @Sendable (any Engine) async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        guard let database else {
            await scheduler.pause(.microseconds(10) ... .milliseconds(2))
            defer { tellEnded() }
            return try await scheduler.outside { () async throws(StoreError) in try await operation(engine) }
        }
        try await hop(StoreError(.unavailable))
        // From here on the server acts, whatever becomes of who asked.
        let result = await withTaskExecutorPreference(database.machine) {
            do throws(StoreError) {
                return Result<Value, StoreError>.success(
                    try await database.execute { () async throws(StoreError) in try await operation(engine) })
            } catch {
                return .failure(error)
            }
        }
        try await hop(StoreError(.uncertain))
        return try result.get()
    }

    /// One way through the network. Who hears nothing gives up after a second.
    private func hop(_ fault: StoreError) async throws(StoreError) {
        let isSlow = scheduler.chance(2)
        await scheduler.pause(
            isSlow ? .milliseconds(5) ... .milliseconds(900) : .microseconds(50) ... .milliseconds(2))
        guard state.withLock(\.trouble.isCut) else { return }
        await scheduler.pause(.seconds(1) ... .seconds(1))
        throw fault
    }
}

extension EngineLink: StoredRecords {
    func find(_ keys: [Digest16], often: Int, now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        try await call(.records) { (engine) throws(StoreError) in
            try await engine.find(keys, often: often, now: now)
        }
    }

    func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        try await call(.records) { (engine) throws(StoreError) in
            try await engine.page(index, after: after, limit: limit, now: now)
        }
    }

    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        try await call(.records) { (engine) throws(StoreError) in try await engine.apply(changes, now: now) }
    }

    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        let count = try await call(.sweep) { (engine) throws(StoreError) in
            try await engine.purge(before: before, limit: limit)
        }
        if count > 0 { ledger.happened("process \(process) purged \(count) before \(before.seconds)") }
        return count
    }

    func setRecordsAside(_ records: [SeenRecord]) async throws(StoreError) -> Int {
        try await call(.records) { (engine) throws(StoreError) in try await engine.setRecordsAside(records) }
    }

    func tally(_ owners: [Digest16], weighing: Bool) async throws(StoreError) -> [RecordTally] {
        try await call(.records) { (engine) throws(StoreError) in
            try await engine.tally(owners, weighing: weighing)
        }
    }

    func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await call(.records) { (engine) throws(StoreError) in
            try await engine.forget(owner: owner, limit: limit)
        }
    }
}

extension EngineLink: StoredOutbox {
    /// Told of nothing, where that is broken.
    var ended: EndedPushes {
        if sabotage.contains(.keepsTheEnded) { return deaf }
        return database == nil ? relayed : engine.ended
    }

    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        guard sabotage.contains(.marksApart) else {
            return try await call(.accept) { (engine) throws(StoreError) in
                try await engine.accept(pushes, changes: changes, now: now)
            }
        }
        let marks = pushes.map(\.mark)
        let known = state.withLock { state in marks.map { $0.flatMap { state.marks[$0] } } }
        if let repeated = known.first.flatMap(\.self), pushes.count == 1 {
            return .committed([.repeated(of: repeated, first: nil)])
        }
        var bare = pushes
        for place in bare.indices { bare[place].mark = nil }
        let unmarked = bare
        let accepted = try await call(.accept) { (engine) throws(StoreError) in
            try await engine.accept(unmarked, changes: changes, now: now)
        }
        state.withLock { state in
            for push in pushes { if let mark = push.mark { state.marks[mark] = push.id } }
        }
        return accepted
    }

    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        let (told, changes) = sabotaged(steps, feedback)
        do throws(StoreError) {
            let done = try await call(.settle) { (engine) throws(StoreError) in
                try await engine.settle(told, feedback: changes, now: now)
            }
            for (step, isOurs) in zip(told, done) where isOurs { ledger.settled(step, now: now) }
            return done
        } catch {
            for step in steps where step.step == .withdraw && error.code == .uncertain {
                ledger.failures.doubt(step.id)
            }
            throw error
        }
    }

    private func sabotaged(
        _ steps: [StoredSettlement], _ feedback: [StoredChange]
    ) -> ([StoredSettlement], [StoredChange]) {
        let withdraws = steps.contains { $0.step == .withdraw }
        var told = steps
        if sabotage.contains(.keepsWithdrawn) {
            for place in told.indices where told[place].step == .withdraw { told[place].step = .park }
        }
        if sabotage.contains(.undoesNothing), withdraws { return (told, []) }
        guard sabotage.contains(.endsNewer) else { return (told, feedback) }
        return (
            told,
            feedback.map { change in
                guard case .expire(let record, let at, _) = change else { return change }
                return .expire(record, at: at, if: .any)
            }
        )
    }

    func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await call(.settle) { (engine) throws(StoreError) in try await engine.setAside(pushes) }
    }

    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        var rows: [StoredPush] = []
        if sabotage.contains(.claimsOthers), let ghost {
            rows = try await call(.claim) { (_) throws(StoreError) in
                try await ghost.claim(lane, due: due, limit: limit, classes: classes)
            }
        }
        let left = limit - rows.count
        if left > 0 {
            rows += try await call(.claim) { (engine) throws(StoreError) in
                try await engine.claim(lane, due: due, limit: left, classes: classes)
            }
        }
        let handled = rows.map(handled)
        if sabotage.contains(.losesClaims), zip(rows, handled).contains(where: { $0.sealed != $1.sealed }) {
            throw StoreError(.corrupt)
        }
        return handled
    }

    /// A row as this process reads it.
    private func handled(_ row: StoredPush) -> StoredPush {
        let trouble = state.withLock(\.trouble)
        var row = row
        if scheduler.chance(trouble.spoils) { ledger.spoil(row.id) }
        if ledger.isSpoilt(row.id), let last = row.sealed.indices.last { row.sealed[last] ^= 1 }
        // The first bytes name the key.
        if scheduler.chance(trouble.locked) {
            row.sealed[0] ^= 0x40
            ledger.lock(row.id)
        }
        return row
    }

    func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await call(.nextDue) { (engine) throws(StoreError) in try await engine.nextDue(lane) }
    }

    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        let ended = try await call(.sweep) { (engine) throws(StoreError) in
            try await engine.endCustody(before: before, limit: limit)
        }
        if !ended.isEmpty {
            ledger.happened("process \(process) ended custody of \(ended) before \(before.seconds)")
        }
        return ended
    }
}

extension EngineLink: StoredOwners {
    func renew(for span: Duration) async throws(StoreError) {
        let told = sabotage.contains(.shortLease) ? span / 20 : span
        try await call(.renew) { (engine) throws(StoreError) in try await engine.renew(for: told) }
    }

    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await call(.enrol) { (engine) throws(StoreError) in try await engine.enrol(in: groups, for: span)
        }
    }

    func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        if sabotage.contains(.trustsClocks) {
            _ = try await purge(before: clock(), limit: limit)
            _ = try await endCustody(before: clock(), limit: limit)
        }
        return try await call(.sweep) { (engine) throws(StoreError) in
            try await engine.takeOver(lanes, limit: limit)
        }
    }

    func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await call(.sweep) { (engine) throws(StoreError) in
            try await engine.letGo(besides: lanes, limit: limit)
        }
    }

    func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await call(.reclaim) { (engine) throws(StoreError) in try await engine.reclaim(limit: limit) }
    }

    func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await call(.load) { (engine) throws(StoreError) in try await engine.load() }
    }
}

extension EngineLink: StoredSettings {
    func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await call(.renew) { (engine) throws(StoreError) in try await engine.lastTime(step) }
    }

    func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await call(.setting) { (engine) throws(StoreError) in try await engine.setting(name) }
    }

    func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await call(.setting) { (engine) throws(StoreError) in
            try await engine.settle(setting: name, to: value)
        }
    }
}
