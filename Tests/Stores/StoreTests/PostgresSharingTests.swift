import PostgresStore
import PushModel
import PushTesting
import Testing

/// Several processes on one database.
@Suite("Processes that share a PostgreSQL database", .timeLimit(.minutes(30)))
struct PostgresSharingTests {
    private static func owner(_ number: UInt64) -> OwnerID { OwnerID(Digest16(high: 7, low: number)) }

    private static func limits(_ database: PostgresDatabase) -> PostgresLimits {
        var limits = database.limits
        limits.outboxRows = 100_000
        return limits
    }

    private func open(_ database: PostgresDatabase, _ count: Int) async throws -> [PostgresStore] {
        try await withThrowingTaskGroup(of: PostgresStore.self) { group in
            for number in 1...count {
                group.addTask {
                    try await database.open(Self.owner(UInt64(number)), limits: Self.limits(database))
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test("Eight that start at once on an empty database make one schema")
    func racingStarts() async throws {
        let database = try await PostgresDatabase()
        let stores = try await open(database, 8)
        for (number, store) in stores.enumerated() {
            let value = try await store.settle(setting: "check", to: [UInt8(number)])
            #expect(try await store.setting("check") == value)
        }
        for store in stores { await store.close() }
    }

    @Test("What a dead process owed goes to four others, each push once")
    func takeover() async throws {
        let database = try await PostgresDatabase()
        let dead = try await database.open(Self.owner(99), limits: Self.limits(database))
        try await dead.renew(for: .seconds(20))
        let pushes = (0..<500 as Range<UInt64>).map {
            PostgresSamples.push($0, database.clock, parked: $0 % 3 == 0)
        }
        _ = try await dead.accept(pushes, changes: [], now: database.clock.now)
        let stores = try await open(database, 4)
        for store in stores { try await store.renew(for: .seconds(3_600)) }
        database.clock.advance(by: .seconds(21))
        let claimed = try await withThrowingTaskGroup(of: [StoredPush].self) { group in
            for store in stores {
                group.addTask {
                    // Ends: each round takes some of five hundred, or is the last.
                    while try await store.takeOver([PostgresSamples.lane], limit: 25) > 0 {}
                    return try await store.claim(
                        PostgresSamples.lane, due: database.clock.now, limit: 1_000)
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(claimed.count == 500 && Set(claimed.map(\.id)) == Set(pushes.map(\.id)))
        for store in stores { try await store.renew(for: .seconds(3_600)) }
        #expect(try await stores[0].load().rows == 500, "counted once, although two processes had them")
    }

    @Test("A process that slept counts what it still has, and has room for as much as is free")
    func slept() async throws {
        let database = try await PostgresDatabase()
        let sleeper = try await database.open(Self.owner(1))
        let heir = try await database.open(Self.owner(2))
        let bound = UInt64(EngineConformance.rowBound)
        try await sleeper.renew(for: .seconds(20))
        try await heir.renew(for: .seconds(3_600))
        let pushes = (0..<bound).map { PostgresSamples.push($0, database.clock, parked: $0 % 2 == 0) }
        _ = try await sleeper.accept(pushes, changes: [], now: database.clock.now)
        database.clock.advance(by: .seconds(21))
        while try await heir.takeOver([PostgresSamples.lane], limit: 20) > 0 {}
        let taken = try await heir.claim(PostgresSamples.lane, due: database.clock.now, limit: 1_000)
        let ends = taken.map {
            StoredSettlement(
                row: $0.row, id: $0.id, epoch: $0.epoch, mark: nil, step: .settle, first: .accepted)
        }
        #expect(try await heir.settle(ends, feedback: [], now: database.clock.now).count == ends.count)
        try await heir.renew(for: .seconds(3_600))
        // SIGCONT: it knows of nothing.
        try await sleeper.renew(for: .seconds(20))
        let load = try await sleeper.load()
        #expect(load.rows == 0 && load.bytes == 0 && load.lanes.isEmpty)
        let more = (100..<100 + bound).map { PostgresSamples.push($0, database.clock) }
        _ = try await sleeper.accept(more, changes: [], now: database.clock.now)
        try await sleeper.renew(for: .seconds(20))
        try await heir.renew(for: .seconds(3_600))
        #expect(try await heir.load().rows == Int(bound), "nor do the others count it any more")
        for store in [sleeper, heir] { await store.close() }
    }

    @Test("One mark that many processes accept at once is written once, and the others learn of whom")
    func oneMark() async throws {
        let database = try await PostgresDatabase()
        let stores = try await open(database, 4)
        for round in 0..<20 as Range<UInt64> {
            let answers = try await withThrowingTaskGroup(of: (PushID, StoredAdmission).self) { group in
                for number in 0..<16 as Range<UInt64> {
                    let store = stores[Int(number) % stores.count]
                    var push = PostgresSamples.push(round * 100 + number, database.clock)
                    push.mark = PostgresSamples.digest(70_000 + round)
                    group.addTask { [push] in
                        let accepted = try await store.accept([push], changes: [], now: database.clock.now)
                        guard case .committed(let admissions) = accepted else { throw StoreError(.corrupt) }
                        return (push.id, admissions[0])
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let written = answers.filter { if case .owed = $0.1 { true } else { false } }
            try #require(written.count == 1)
            let others = answers.filter { $0.0 != written[0].0 }
            #expect(others.allSatisfy { $0.1 == .repeated(of: written[0].0, first: nil) })
        }
        for store in stores { try await store.renew(for: .seconds(3_600)) }
        #expect(try await stores[0].load().rows == 20)
    }

    @Test("Of puts under one condition that race, one stands")
    func conditionalPuts() async throws {
        let database = try await PostgresDatabase()
        let stores = try await open(database, 4)
        for key in 0..<10 as Range<UInt64> {
            let results = try await withThrowingTaskGroup(of: Applied.self) { group in
                for number in 0..<12 as Range<UInt64> {
                    let store = stores[Int(number) % stores.count]
                    let record = PostgresSamples.record(key, version: number)
                    group.addTask {
                        try await store.apply([.put(record, if: .absent)], now: database.clock.now)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.count { $0 == .committed } == 1)
        }
    }

    @Test("Whoever pages while others write misses no record")
    func pagingUnderWrites() async throws {
        let database = try await PostgresDatabase()
        let stores = try await open(database, 4)
        let perStore = 150
        let total = perStore * (stores.count - 1)
        let seen = try await withThrowingTaskGroup(of: Set<Digest16>.self) { group in
            for (place, store) in stores.dropFirst().enumerated() {
                group.addTask {
                    for number in 0..<perStore {
                        let record = PostgresSamples.record(UInt64(place * 1_000 + number))
                        _ = try await store.apply([.put(record, if: .any)], now: database.clock.now)
                    }
                    return []
                }
            }
            group.addTask { [reader = stores[0]] in
                var seen: Set<Digest16> = []
                var after: UInt64 = 0
                // Ends when all were seen; a record that was passed over would let it run into the limit.
                while seen.count < total {
                    let page = try await reader.page(
                        .space(PostgresSamples.space), after: after, limit: 7, now: database.clock.now)
                    seen.formUnion(page.map(\.key))
                    after = page.last?.revision ?? after
                }
                return seen
            }
            return try await group.reduce(into: Set<Digest16>()) { $0.formUnion($1) }
        }
        #expect(seen.count == total)
    }

    @Test("What is accepted, put off and settled at once leaves the count as it is in the table")
    func counting() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(Self.owner(1), limits: Self.limits(database))
        guard let lane = LaneName(PostgresSamples.lane) else { return }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<32 as Range<UInt64> {
                group.addTask {
                    for number in 0..<10 as Range<UInt64> {
                        let push = PostgresSamples.push(caller * 100 + number, database.clock)
                        let accepted = try await store.accept([push], changes: [], now: database.clock.now)
                        guard case .committed(let admissions) = accepted,
                            case .owed(let row, let epoch) = admissions[0]
                        else { throw StoreError(.corrupt) }
                        let later = database.clock.now + .seconds(60)
                        let step: Settlement.Step =
                            number % 3 == 0
                            ? .retry(notBefore: later, attempt: 1, lane: lane, parked: true) : .settle
                        let settled = StoredSettlement(
                            row: row, id: push.id, epoch: epoch, mark: nil, step: step, first: .accepted)
                        let ours = try await store.settle([settled], feedback: [], now: database.clock.now)
                        #expect(ours == [true])
                    }
                }
            }
            try await group.waitForAll()
        }
        let load = try await store.load()
        #expect(load.rows == 32 * 4 && load.lanes == [PostgresSamples.lane: 32 * 4])
        #expect(load.bytes == 32 * 4 * 300)
        await store.close()
        // A successor counts what stands in the table.
        let next = try await database.open(Self.owner(1), limits: Self.limits(database))
        #expect(try await next.load() == load)
    }
}

/// Rows as these tests need them.
enum PostgresSamples {
    static let lane = "acme-chat/apns/production"
    static let space = "main/device"

    static func digest(_ number: UInt64) -> Digest16 {
        var random = SeededRandom(seed: number)
        return Digest16(high: random.next(), low: random.next())
    }

    static func push(
        _ number: UInt64, _ clock: ManualClock, parked: Bool = false, origin: UInt64 = 1
    ) -> StoredPush {
        let now = clock.now
        let random = digest(number + 900_000)
        return StoredPush(
            row: 0, id: PushID(at: now, random: random.high, random.low), lane: lane, pushClass: .normal,
            origin: digest(origin), record: nil, touchedAt: now, notBefore: now,
            custodyEnds: now + .seconds(86_400), attempt: 0, epoch: 1, parked: parked, mark: nil,
            sealed: [UInt8](repeating: 7, count: 300))
    }

    static func record(_ key: UInt64, version: UInt64 = 0) -> StoredRecord {
        StoredRecord(
            key: digest(key), space: space, owner: nil, address: nil, version: version, state: .live,
            touchedAt: UnixTime(milliseconds: 1_000), expiresAt: .distantFuture, revision: 0,
            body: [UInt8](repeating: 3, count: 40))
    }
}
