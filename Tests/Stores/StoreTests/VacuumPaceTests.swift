import PushModel
import PushTesting
import Testing

@testable import PostgresStore

@Suite("How often the tables of pushes are vacuumed", .timeLimit(.minutes(30)))
struct VacuumPaceTests {
    private let limits = PostgresLimits()

    private func sight(
        dead: Int, vacuums: Int, minutes: Int = 0, threshold: Int? = 2_000, insert: Int? = nil
    ) -> VacuumPace.Sight {
        VacuumPace.Sight(
            table: .outbox, dead: dead, vacuums: vacuums, sinceVacuum: .seconds(60 * minutes),
            threshold: threshold, insertThreshold: insert)
    }

    /// One that has seen a vacuum before.
    private func pace(vacuums: Int) -> VacuumPace {
        var pace = VacuumPace()
        pace.saw(sight(dead: 0, vacuums: vacuums))
        return pace
    }

    @Test("Behind a vacuum that left many dead rows the next one waits for twice as many")
    func waits() {
        let pace = pace(vacuums: 7)
        #expect(pace.threshold(for: sight(dead: 700_000, vacuums: 8), limits: limits) == 1_400_000)
        #expect(pace.threshold(for: sight(dead: 499_999, vacuums: 8), limits: limits) == nil)
        #expect(
            pace.threshold(for: sight(dead: 9_000_000, vacuums: 7), limits: limits) == nil,
            "died since the last vacuum, which could not know")
        #expect(
            pace.threshold(for: sight(dead: .max / 4, vacuums: 8), limits: limits) == VacuumPace.highest)
        #expect(
            VacuumPace().threshold(for: sight(dead: 700_000, vacuums: 8), limits: limits) == nil,
            "whoever has just begun has seen no vacuum end")
    }

    @Test("What was raised is raised on, unless another process has just done so, and ends with the reader")
    func goesOn() {
        let pace = pace(vacuums: 7)
        func raised(_ dead: Int, _ vacuums: Int, minutes: Int = 0) -> Int? {
            pace.threshold(
                for: sight(
                    dead: dead, vacuums: vacuums, minutes: minutes, threshold: 1_400_000, insert: 1_400_000),
                limits: limits)
        }
        #expect(raised(1_500_000, 8) == 3_000_000)
        #expect(raised(720_000, 8) == nil, "another process raised it behind the same vacuum")
        #expect(raised(20_000, 8) == 2_000, "the rows could go")
        #expect(raised(900_000, 7, minutes: 9) == nil)
        #expect(raised(900_000, 7, minutes: 10) == 2_000, "at least every ten minutes")
        var counted = sight(dead: 0, vacuums: 0, threshold: 1_400_000, insert: 1_400_000)
        counted.sinceVacuum = nil
        #expect(
            VacuumPace().threshold(for: counted, limits: limits) == 2_000,
            "a server that lost its statistics")
    }

    @Test("An operator's own numbers are left alone")
    func operators() {
        let pace = pace(vacuums: 7)
        for (threshold, insert) in [(50_000, nil), (50_000, 1_000), (2_000, 9_000), (nil, nil), (50, 50)] {
            let own = sight(dead: 700_000, vacuums: 8, minutes: 60, threshold: threshold, insert: insert)
            #expect(pace.threshold(for: own, limits: limits) == nil)
        }
    }
}

/// Against a server that vacuums by itself, every second.
@Suite("PostgreSQL's own vacuum beside an old snapshot", .timeLimit(.minutes(30)))
struct PostgresVacuumTests {
    private static let options = """
        SELECT string_agg(o, ',' ORDER BY o) FROM pg_class, unnest(reloptions) o
        WHERE pg_class.oid = 'outbox'::regclass
        """

    @Test("While a snapshot keeps dead rows vacuums become rare; when it has gone they are as they were")
    func paces() async throws {
        let cluster = try await PostgresCluster.start(
            PostgresCluster.Options(settings: ["autovacuum_naptime": "1s"]))
        var limits = PostgresLimits()
        limits.connections = 2
        limits.deadRows = 2_500
        // Only a vacuum ends it, and no time.
        limits.vacuumEvery = .seconds(86_400)
        let clock = ManualClock()
        let store = try await PostgresStore(
            try PostgresAddress(cluster.url), owner: OwnerID(Digest16(high: 7, low: 1)), limits: limits,
            world: clock.world(seed: 5))
        func read(_ text: String) async throws -> String {
            try await cluster.execute(text, database: "sealbell")
        }
        let before = try await read(Self.options)
        #expect(before.contains("autovacuum_vacuum_threshold=2000"))

        async let reader = read("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT pg_sleep(600)")
        let holding = """
            SELECT pid FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND query LIKE '%pg_sleep(600)%'
            AND pid <> pg_backend_pid()
            """
        let holder = try await named("who reads") { try await read(holding) }
        let fill = """
            INSERT INTO outbox (id, touched_at, not_before, custody_ends, epoch, origin, owner, attempt, class,
            parked, lane, sealed) SELECT gen_random_uuid(), 0, 0, 0, 1, gen_random_uuid(), gen_random_uuid(), 0,
            1, false, 'a', '' FROM generate_series(1, 5000)
            """
        // At once: between the two the server might vacuum for the inserted ones' sake.
        _ = try await read("BEGIN; \(fill); DELETE FROM outbox; COMMIT")
        var pace = try await store.keepPace(VacuumPace())
        // The server looks every second.
        try await asked(for: "a raised threshold") {
            pace = try await store.keepPace(pace)
            return try await read(Self.options) != before
        }
        let raised = try await read(Self.options)
        #expect(raised.contains("autovacuum_vacuum_insert_threshold="))
        #expect(raised.contains("autovacuum_vacuum_threshold=10000"))

        _ = try await read("SELECT pg_terminate_backend(\(holder))")
        // It was ended by us.
        _ = try? await reader
        _ = try await read("BEGIN; \(fill); \(fill); \(fill); DELETE FROM outbox; COMMIT")
        try await asked(for: "the threshold of before") {
            pace = try await store.keepPace(pace)
            return try await read(Self.options) == before
        }
        await store.close()
        await cluster.end()
    }

    @Test("While somebody holds the table nothing is changed and nobody waits long; then it is made up for")
    func busy() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(OwnerID(Digest16(high: 7, low: 2)))
        let name = String(try #require(database.url.split(separator: "/").last))
        func read(_ text: String) async throws -> String {
            try await PostgresCluster.shared.execute(text, database: name)
        }
        _ = try await read(
            """
            ALTER TABLE outbox SET (autovacuum_vacuum_threshold = 9000,
            autovacuum_vacuum_insert_threshold = 9000)
            """)
        let raised = try await read(Self.options)
        let lock = "BEGIN; LOCK TABLE outbox IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_sleep(600)"
        async let held = read(lock)
        let question = """
            SELECT pid FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock' AND granted
            AND relation = 'outbox'::regclass
            """
        let holder = try await named("who holds the lock") { try await read(question) }
        var pace = try await store.keepPace(VacuumPace())
        #expect(try await read(Self.options) == raised)
        _ = try await read("SELECT pg_terminate_backend(\(holder))")
        // It was ended by us.
        _ = try? await held
        pace = try await store.keepPace(pace)
        #expect(try await read(Self.options).contains("autovacuum_vacuum_threshold=2000"))
        #expect(try await !read(Self.options).contains("insert"))
        await store.close()
    }
}
