import Foundation
import MemoryStore
import PostgresStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@testable import AtRest

@Suite("What became of a registration's pushes is kept for a week", .timeLimit(.minutes(30)))
struct RegistrationHistoryTests {
    private let clock = ManualClock()

    enum Kind: CaseIterable, Sendable { case memory, sqlite, postgres }

    private static let space = Space(core: "device")
    private static let owner = RecordKey(Space(core: "realm"), Secret("realm".utf8))

    private static func process(_ number: UInt64) -> OwnerID { OwnerID(Digest16(high: 5, low: number)) }
    private static func key(_ number: Int) -> RecordKey { RecordKey(space, Secret("device \(number)".utf8)) }

    private static func register(_ number: Int, _ store: SealedStore, _ clock: ManualClock) async throws {
        let record = Record(
            key: key(number), owner: owner,
            address: RecordKey(Space(core: "address"), Secret("address \(number)".utf8)),
            touchedAt: clock.now, body: Secret([1]))
        #expect(try await store.apply([.put(record, if: .any)]) == .committed)
    }

    private static func count(
        _ number: Int, _ event: RegistrationEvent, _ reason: String = "", _ count: UInt32 = 1,
        _ store: SealedStore, _ clock: ManualClock
    ) async throws -> Int {
        var left: [RegistrationCount] = []
        return try await store.count(
            [
                RegistrationCount(
                    registration: store.digest(of: key(number)), event: event, reason: reason, count: count,
                    last: clock.now)
            ], left: &left)
    }

    private static func told(_ number: Int, _ store: SealedStore) async throws -> [String] {
        let history = try await store.history(of: store.digest(of: key(number)))
        return (history?.cells ?? []).map { "\($0.hours)h \($0.event.label) \($0.reason) \($0.count)" }
    }

    /// A store of each kind, which the body may open again as the next process would.
    private static func with(
        _ kind: Kind, _ body: (ManualClock, _ next: (UInt64) async throws -> SealedStore) async throws -> Void
    ) async throws {
        switch kind {
        case .memory:
            let clock = ManualClock()
            let keys = AtRestKeys.generate(clock.world(seed: 3))
            let shared = MemoryStore.Shared(rows: 1_000)
            try await body(clock) { number in
                try await SealedStore(
                    engine: MemoryStore(owner: process(number), sharing: shared, clock: { clock.now }),
                    keys: keys, world: clock.world(seed: number))
            }
        case .sqlite:
            let clock = ManualClock()
            let keys = AtRestKeys.generate(clock.world(seed: 3))
            let folder = try TemporaryStore()
            defer { folder.remove() }
            var last: SQLiteStore?
            try await body(clock) { number in
                try last?.close()
                let engine = try SQLiteStore(
                    path: folder.path, owner: process(number), world: clock.world(seed: number))
                last = engine
                return try await SealedStore(engine: engine, keys: keys, world: clock.world(seed: number))
            }
            try last?.close()
        case .postgres:
            let database = try await PostgresDatabase()
            let keys = AtRestKeys.generate(database.clock.world(seed: 3))
            var open: [PostgresStore] = []
            try await body(database.clock) { number in
                let engine = try await database.open(process(number))
                open.append(engine)
                return try await SealedStore(
                    engine: engine, keys: keys, world: database.clock.world(seed: number))
            }
            for engine in open { await engine.close() }
        }
    }

    @Test("Counts add up by hour and word, and the next process knows them", arguments: Kind.allCases)
    func adds(_ kind: Kind) async throws {
        try await Self.with(kind) { clock, next in
            let store = try await next(1)
            try await Self.register(1, store, clock)
            #expect(try await Self.count(1, .delivered, "", 3, store, clock) == 1)
            #expect(try await Self.count(1, .delivered, "", 2, store, clock) == 1)
            #expect(try await Self.count(1, .refused, "BadTopic", 1, store, clock) == 1)
            clock.advance(by: .seconds(3_600))
            #expect(try await Self.count(1, .refused, "BadTopic", 4, store, clock) == 1)
            let later = try await next(2)
            #expect(
                try await Self.told(1, later) == [
                    "1h delivered  5", "1h refused BadTopic 1", "1h refused BadTopic 4"
                ])
            clock.advance(by: .seconds(3 * 86_400))
            let digest = later.digest(of: Self.key(1))
            let cells = try #require(try await later.history(of: digest)).cells
            #expect(cells.allSatisfy { $0.hours == 24 }, "hours of days that are over are joined")
            #expect(cells.reduce(0) { $0 + Int($1.count) } == 10)
            clock.advance(by: .seconds(5 * 86_400))
            #expect(try await Self.told(1, later).isEmpty, "after a week nothing is shown")
            #expect(try await later.purge(before: clock.now, limit: 10) == 1, "and nothing is kept")
        }
    }

    @Test(
        "It goes with its registration, and none begins beside one that has ended", arguments: Kind.allCases
    )
    func goes(_ kind: Kind) async throws {
        try await Self.with(kind) { clock, next in
            let store = try await next(1)
            for number in 1...3 {
                try await Self.register(number, store, clock)
                #expect(try await Self.count(number, .delivered, "", 1, store, clock) == 1)
            }
            #expect(try await store.apply([.delete(Self.key(1), if: .any)]) == .committed)
            #expect(try await store.apply([.expire(Self.key(2), at: clock.now, if: .any)]) == .committed)
            for number in 1...2 {
                #expect(try await Self.told(number, store).isEmpty)
                #expect(try await Self.count(number, .refused, "x", 1, store, clock) == 0)
            }
            #expect(try await Self.told(3, store).count == 1)
            #expect(try await store.tally([SealedStore.historyOwner], weighing: true)[0].records == 1)
            #expect(try await store.forget(owner: Self.owner, limit: 100) > 0)
            let left = try await store.tally([SealedStore.historyOwner], weighing: true)[0]
            #expect(left == .none, "nothing is left")
        }
    }

    @Test("Two processes that write one history lose no count", arguments: [Kind.memory, .postgres])
    func shared(_ kind: Kind) async throws {
        try await Self.with(kind) { clock, next in
            let stores = [try await next(1), try await next(2)]
            try await Self.register(1, stores[0], clock)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for store in stores {
                    group.addTask {
                        for _ in 0..<20 { try await Self.insist(store, clock) }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await Self.told(1, stores[0]) == ["1h delivered  40"])
        }
    }

    /// Again where the other was always first.
    private static func insist(_ store: SealedStore, _ clock: ManualClock) async throws {
        // Ends: one of the two is always first.
        while true {
            do {
                _ = try await count(1, .delivered, "", 1, store, clock)
                return
            } catch let error as StoreError where error.code == .unavailable { await Task.yield() }
        }
    }

    @Test("Beyond the bounds those go that were written longest ago", arguments: Kind.allCases)
    func bounded(_ kind: Kind) async throws {
        try await Self.with(kind) { clock, next in
            let store = try await next(1)
            for number in 1...6 {
                try await Self.register(number, store, clock)
                _ = try await Self.count(number, .delivered, "", 1, store, clock)
            }
            _ = try await Self.count(1, .delivered, "", 1, store, clock)
            var bounds = SealedStore.HistoryBounds()
            bounds.histories = 4
            #expect(try await store.boundHistories(bounds) == 2)
            for number in [1, 4, 5, 6] { #expect(try await Self.told(number, store).count == 1) }
            for number in [2, 3] { #expect(try await Self.told(number, store).isEmpty) }
            bounds.bytes = try await store.tally([SealedStore.historyOwner], weighing: true)[0].bytes - 1
            #expect(try await store.boundHistories(bounds) == 1)
            #expect(try await Self.told(4, store).isEmpty, "bytes count too")
            #expect(try await store.boundHistories(bounds) == 0)
        }
    }

    @Test("A rotation seals it anew, and its row says neither word nor count")
    func rotated() async throws {
        let world = clock.world(seed: 3)
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let engine = try SQLiteStore(path: folder.path, owner: Self.process(1), world: world)
        let keys = AtRestKeys.generate(world)
        let store = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
        try await Self.register(1, store, clock)
        _ = try await Self.count(1, .refused, "BadTopic", 1, store, clock)
        let before = try await engine.page(.space("core/history"), after: 0, limit: 9, now: clock.now)
        let rotation = SealKeyRotation(store, engine, limits: StoreRotationTests.limits)
        try await rotation.adopt(try #require(keys.rotated(world)))
        for _ in 0..<10 where rotation.progress.phase != .done { try await rotation.step() }
        let after = try await engine.page(.space("core/history"), after: 0, limit: 9, now: clock.now)
        #expect(before.map { $0.body[3] } == [1] && after.map { $0.body[3] } == [2])
        #expect(try await Self.told(1, store) == ["1h refused BadTopic 1"])
        _ = try await Self.count(1, .delivered, "", 900, store, clock)
        let fuller = try await engine.page(.space("core/history"), after: 0, limit: 9, now: clock.now)
        #expect(fuller.map(\.body.count) == before.map(\.body.count), "its size does not say how much")
        try engine.close()
        #expect(try folder.bytes().range(of: Data("BadTopic".utf8)) == nil)
    }

    @Test("What a clock that was ahead has counted goes, and pushes out nothing")
    func ahead() {
        let now = UnixTime(seconds: 1_800_000_000)
        var history = RegistrationHistory()
        history.add(.refused, "BadTopic", 1, last: now)
        history.add(.delivered, "", 1, last: now + .seconds(3_600))
        for hour in 2..<100 { history.add(.delivered, "", 1, last: now + .seconds(3_600 * Int64(hour))) }
        history.trim(at: now)
        #expect(history.cells.map(\.event) == [.refused, .delivered])
        let last = history.cells.last?.last
        #expect(last == now + .seconds(3_600), "another relay's clock may be ahead a little")
    }

    /// The same with a wall clock that is wrong by some years, and a monotonic one that is right.
    private static func world(_ clock: ManualClock, wrongBy skew: Duration, seed: UInt64) -> World {
        var world = clock.world(seed: seed)
        let now = world.now
        world.now = { now() + skew }
        return world
    }

    @Test(
        "A relay whose clock is years ahead, or behind, ends nobody's counts, and its own are of their time",
        arguments: [1, -1], [1, 30])
    func wrongClock(_ side: Int, _ times: Int) async throws {
        let skew = Duration.seconds(side * 3 * 365 * 86_400)
        let keys = AtRestKeys.generate(clock.world(seed: 3))
        let shared = MemoryStore.Shared(rows: 1_000)
        func store(_ number: UInt64, _ world: World) async throws -> SealedStore {
            try await SealedStore(
                engine: MemoryStore(owner: Self.process(number), sharing: shared, clock: { clock.now }),
                keys: keys, world: world)
        }
        let right = try await store(1, clock.world(seed: 1))
        try await right.clock?.keep()
        try await Self.register(1, right, clock)
        _ = try await Self.count(1, .refused, "BadTopic", 2, right, clock)
        let wrong = try await store(2, Self.world(clock, wrongBy: skew, seed: 2))
        var left: [RegistrationCount] = []
        for _ in 0..<times {
            let count = RegistrationCount(
                registration: wrong.digest(of: Self.key(1)), event: .delivered, reason: "", count: 1,
                last: clock.now + skew)
            #expect(try await wrong.count([count], left: &left) == 1)
        }
        let told = try await Self.told(1, right)
        #expect(told.contains("1h refused BadTopic 2"), "\(told)")
        #expect(try await Self.told(1, wrong).contains("1h refused BadTopic 2"))
        // Of a clock that is behind nobody knows by how much: its own counts are as old as it says.
        if side > 0 { #expect(told.contains("1h delivered  \(times)"), "\(told)") }
        _ = try await Self.count(1, .refused, "BadTopic", 1, right, clock)
        #expect(try await Self.told(1, right).contains("1h refused BadTopic 3"))
        #expect(try await right.purge(before: clock.now, limit: 10) == 0)
        clock.advance(by: .seconds(8 * 86_400))
        #expect(try await Self.told(1, right).isEmpty, "it is over when its week is")
        #expect(try await right.purge(before: clock.now, limit: 10) == 1)
    }

    @Test("A registration that a relay whose clock is years ahead has ended is one that ended now")
    func endedAhead() async throws {
        let keys = AtRestKeys.generate(clock.world(seed: 3))
        let shared = MemoryStore.Shared(rows: 1_000)
        func engine(_ number: UInt64) -> MemoryStore {
            MemoryStore(owner: Self.process(number), sharing: shared, clock: { clock.now })
        }
        let right = try await SealedStore(engine: engine(1), keys: keys, world: clock.world(seed: 1))
        try await right.clock?.keep()
        for number in 1...2 { try await Self.register(number, right, clock) }
        let years = Duration.seconds(3 * 365 * 86_400)
        let wrong = try await SealedStore(
            engine: engine(2), keys: keys, world: Self.world(clock, wrongBy: years, seed: 2))
        let ends: [Change] = [
            .expire(Self.key(1), at: clock.now + years, if: .any),
            .expireStored(wrong.digest(of: Self.key(2)), at: clock.now + years, if: .any)
        ]
        for end in ends { #expect(try await wrong.apply([end]) == .committed) }
        for record in try await right.find([Self.key(1), Self.key(2)]) {
            guard case .expired(let at)? = record?.state else {
                Issue.record("it has not ended")
                continue
            }
            #expect(at == clock.now)
        }
    }

    @Test("Its bytes read as they were written, are bounded, and other bytes are none")
    func bytes() {
        let now = UnixTime(seconds: 1_800_000_000)
        var history = RegistrationHistory()
        for hour in 0..<400 {
            let then = now - .seconds(3_600 * Int64(hour))
            history.add(.delivered, "", .max, last: then)
            history.add(.delivered, "", 1, last: then)
            for word in 0..<8 {
                history.add(.refused, String(repeating: "\(word)", count: 99), 1, last: then)
            }
        }
        history.trim(at: now)
        #expect(history.cells.count == RegistrationHistory.mostCells)
        #expect(history.cells.allSatisfy { now.since($0.last) < .seconds(7 * 86_400) })
        #expect(history.cells.allSatisfy { $0.reason.utf8.count <= RegistrationHistory.reasonBytes })
        #expect(history.cells.contains { $0.count == .max }, "a count stays at its bound")
        let bytes = history.bytes
        #expect(bytes.count <= 4_096 && bytes.count % 512 == 0)
        #expect(bytes.withUnsafeBytes { RegistrationHistory($0) } == history)
        for count in [0, 1, 9, 40] {
            #expect(bytes.prefix(count).withUnsafeBytes { RegistrationHistory($0) } == nil)
        }
        let other = [UInt8](repeating: 0xFF, count: 512)
        #expect(other.withUnsafeBytes { RegistrationHistory($0) } == nil)
    }
}
