import PushModel
import PushTesting
import Testing

@testable import PostgresStore

/// What looks from the low end of an index remembers where that end is.
@Suite("Sweeps and the oldest push on PostgreSQL", .timeLimit(.minutes(30)))
struct PostgresSweepTests {
    private static let owner = OwnerID(Digest16(high: 5, low: 1))

    private struct Rig {
        let database: PostgresDatabase
        let store: PostgresStore

        init() async throws {
            database = try await PostgresDatabase()
            var limits = database.limits
            limits.marksPerSweep = 10
            store = try await database.open(PostgresSweepTests.owner, limits: limits)
        }

        func pass(minutes: Int) { database.clock.advance(by: .seconds(60 * minutes)) }

        func accept(_ numbers: ClosedRange<UInt64>) async throws -> [StoredPush] {
            let pushes = numbers.map { number in
                var push = PostgresSamples.push(number, database.clock)
                push.mark = PostgresSamples.digest(number + 700_000)
                return push
            }
            let answer = try await store.accept(pushes, changes: [], now: database.clock.now)
            guard case .committed = answer else { throw StoreError(.unavailable) }
            return pushes
        }

        func end(_ pushes: [StoredPush]) async throws {
            let steps = pushes.map { push in
                StoredSettlement(
                    row: PostgresAccepting.row(of: push.id), id: push.id, epoch: 1, mark: push.mark,
                    step: .settle,
                    first: .accepted)
            }
            let ended = try await store.settle(steps, feedback: [], now: database.clock.now)
            #expect(ended.allSatisfy { $0 })
        }

        /// Marks that a sweep leaves, those of owed pushes among them.
        func swept() async throws -> Int {
            try await store.sweep()
            return try #require(Int(try await execute("SELECT count(*) FROM marks")))
        }

        @discardableResult
        func execute(_ text: String) async throws -> String {
            let name = String(try #require(database.url.split(separator: "/").last))
            return try await PostgresCluster.shared.execute(text, database: name)
        }
    }

    @Test("Marks go when their time is over, sweep after sweep; those of owed pushes stay")
    func marks() async throws {
        let bench = try await Rig()
        try await bench.end(bench.accept(1...35))
        #expect(try await bench.swept() == 35, "they hold for ten minutes")
        let owed = try await bench.accept(36...36)
        bench.pass(minutes: 12)
        #expect(try await bench.swept() == 1, "more than one statement may remove")
        try await bench.end(bench.accept(37...40))
        #expect(try await bench.swept() == 5)
        bench.pass(minutes: 12)
        #expect(try await bench.swept() == 1)
        // Ended late, it holds for ten minutes from then on.
        try await bench.end(owed)
        #expect(try await bench.swept() == 1)
        bench.pass(minutes: 12)
        #expect(try await bench.swept() == 0)
        await bench.store.close()
    }

    @Test("What a sweep has passed over goes within the hour")
    func passedOver() async throws {
        let bench = try await Rig()
        try await bench.end(bench.accept(1...1))
        bench.pass(minutes: 12)
        #expect(try await bench.swept() == 0)
        try await bench.end(bench.accept(2...2))
        try await bench.execute("UPDATE marks SET minute = 5")
        #expect(try await bench.swept() == 1, "nobody looks there")
        bench.pass(minutes: 61)
        #expect(try await bench.swept() == 0)
        await bench.store.close()
    }

    @Test("The oldest owed push is found as others come and go, also one of a clock that is behind")
    func oldest() async throws {
        let bench = try await Rig()
        #expect(try await bench.store.oldest() == nil)
        let first = try await bench.accept(1...1)
        bench.pass(minutes: 5)
        let second = try await bench.accept(2...2)
        #expect(try await bench.store.oldest() == first[0].id)
        try await bench.end(first)
        #expect(try await bench.store.oldest() == second[0].id)
        try await bench.end(second)
        #expect(try await bench.store.oldest() == nil)
        var behind = PostgresSamples.push(3, bench.database.clock)
        behind.id = PushID(at: bench.database.clock.now - .seconds(59), random: 1, 1)
        _ = try await bench.store.accept([behind], changes: [], now: bench.database.clock.now)
        #expect(try await bench.store.oldest() == behind.id)
        await bench.store.close()
    }
}
