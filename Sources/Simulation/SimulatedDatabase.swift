import MemoryStore
import PushModel
import Synchronization

/// A database server that several processes reach over a network: the memory engine's rows behind a log.
///
/// What is answered is in the log; a crash takes back what was not. Its answers can be lost, and who asked
/// then does not know whether it was done.
final class SimulatedDatabase: Sendable {
    private struct State {
        var isUp = true
        /// Raised with each crash: what was under way before it is not answered.
        var life = 0
        /// What a crash leaves, when not every commit waits for the log.
        var logged: MemoryStore.Image
    }

    let shared = MemoryStore.Shared(rows: 100_000)
    let machine: SimulatedExecutor
    private let scheduler: Scheduler
    private let state: Mutex<State>
    /// False: commits are answered before they are in the log.
    private let waitsForLog: Bool

    init(_ scheduler: Scheduler, waitsForLog: Bool) {
        self.scheduler = scheduler
        self.waitsForLog = waitsForLog
        machine = scheduler.machine()
        state = Mutex(State(logged: shared.image))
    }

    /// The engine of one process, before its network.
    func engine(of owner: OwnerID) -> MemoryStore {
        MemoryStore(owner: owner, sharing: shared, clock: { [scheduler] in scheduler.now })
    }

    func execute<Value: Sendable>(
        _ operation: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let life = state.withLock { $0.isUp ? $0.life : nil }
        guard let life else { throw StoreError(.unavailable) }
        if waitsForLog { await scheduler.pause(.microseconds(100) ... .milliseconds(3)) }
        guard isSame(life) else { throw StoreError(.unavailable) }
        // In one step into rows and log.
        let value = try await operation()
        if waitsForLog { log() }
        await scheduler.pause(.microseconds(50) ... .microseconds(500))
        guard isSame(life) else { throw StoreError(.uncertain) }
        return value
    }

    private func isSame(_ life: Int) -> Bool { state.withLock { $0.isUp && $0.life == life } }

    /// Writes to the log what stands.
    func log() { state.withLock { $0.logged = shared.image } }

    /// Ends at once; what was not in the log is gone.
    func crash() {
        state.withLock { state in
            state.isUp = false
            state.life += 1
            shared.image = state.logged
        }
    }

    func start() { state.withLock { $0.isUp = true } }
}

/// The way of one process to its engine: a network that loses requests and answers, or a function call.
final class EngineLink: Engine {
    /// What is broken on purpose, to see that it is found.
    struct Sabotage: OptionSet, Sendable {
        let rawValue: Int
        /// A push's mark is remembered beside the commit.
        static let marksApart = Sabotage(rawValue: 1)
        /// The store is told a twentieth of the span that the process counts on.
        static let shortLease = Sabotage(rawValue: 2)
    }

    private struct State {
        var isCut = false
        var marks: [Digest16: PushID] = [:]
    }

    private let engine: any Engine
    private let scheduler: Scheduler
    private let database: SimulatedDatabase?
    private let book: Book
    private let sabotage: Sabotage
    private let state = Mutex(State())

    /// - Parameter database: whose engine it is; `nil`: a file of this machine, which is called.
    init(
        _ engine: any Engine, _ scheduler: Scheduler, database: SimulatedDatabase?, book: Book,
        sabotage: Sabotage
    ) {
        self.engine = engine
        self.scheduler = scheduler
        self.database = database
        self.book = book
        self.sabotage = sabotage
    }

    func cut(_ isCut: Bool) { state.withLock { $0.isCut = isCut } }

    private func call<Value: Sendable>(
        _ operation: @Sendable (any Engine) async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        guard let database else {
            await scheduler.pause(.microseconds(10) ... .milliseconds(2))
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
        guard state.withLock(\.isCut) else { return }
        await scheduler.pause(.seconds(1) ... .seconds(1))
        throw fault
    }
}

extension EngineLink {
    func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        try await call { (engine) throws(StoreError) in try await engine.find(keys, now: now) }
    }

    func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        try await call { (engine) throws(StoreError) in
            try await engine.page(index, after: after, limit: limit, now: now)
        }
    }

    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        try await call { (engine) throws(StoreError) in try await engine.apply(changes, now: now) }
    }

    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await call { (engine) throws(StoreError) in try await engine.purge(before: before, limit: limit) }
    }

    func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await call { (engine) throws(StoreError) in try await engine.forget(owner: owner, limit: limit) }
    }

    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        guard sabotage.contains(.marksApart) else {
            return try await call { (engine) throws(StoreError) in
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
        let accepted = try await call { (engine) throws(StoreError) in
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
        let done = try await call { (engine) throws(StoreError) in
            try await engine.settle(steps, feedback: feedback, now: now)
        }
        for (step, isOurs) in zip(steps, done) where isOurs { book.settled(step) }
        return done
    }

    func claim(_ lane: String, due: UnixTime, limit: Int) async throws(StoreError) -> [StoredPush] {
        try await call { (engine) throws(StoreError) in try await engine.claim(lane, due: due, limit: limit) }
    }

    func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await call { (engine) throws(StoreError) in try await engine.nextDue(lane) }
    }

    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await call { (engine) throws(StoreError) in
            try await engine.endCustody(before: before, limit: limit)
        }
    }

    func renew(for span: Duration) async throws(StoreError) {
        let told = sabotage.contains(.shortLease) ? span / 20 : span
        try await call { (engine) throws(StoreError) in try await engine.renew(for: told) }
    }

    func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await call { (engine) throws(StoreError) in try await engine.takeOver(lanes, limit: limit) }
    }

    func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await call { (engine) throws(StoreError) in
            try await engine.letGo(besides: lanes, limit: limit)
        }
    }

    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await call { (engine) throws(StoreError) in try await engine.enrol(in: groups, for: span) }
    }

    func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await call { (engine) throws(StoreError) in try await engine.reclaim(limit: limit) }
    }

    func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await call { (engine) throws(StoreError) in try await engine.load() }
    }

    func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await call { (engine) throws(StoreError) in try await engine.setAside(pushes) }
    }

    func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await call { (engine) throws(StoreError) in try await engine.lastTime(step) }
    }

    func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await call { (engine) throws(StoreError) in try await engine.setting(name) }
    }

    func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await call { (engine) throws(StoreError) in try await engine.settle(setting: name, to: value) }
    }
}
