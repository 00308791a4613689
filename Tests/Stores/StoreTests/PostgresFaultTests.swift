import AtRest
import PostgresStore
import PushModel
import PushTesting
import Testing

/// What goes wrong on the server's side, or between us and it, on the tests' shared server.
@Suite("A PostgreSQL store and what refuses it", .timeLimit(.minutes(30)))
struct PostgresRefusalTests {
    private static let owner = OwnerID(Digest16(high: 8, low: 1))

    private func name(_ url: String) throws -> String {
        String(try #require(url.split(separator: "/").last))
    }

    @Test("Text that is no address of a database is refused, and no password is ever shown")
    func addresses() throws {
        for text in [
            "", "sqlite:relay.sqlite", "postgresql://a:b@h:x:y/", "postgresql://a,b,c/?port=1,2",
            "postgresql://h?nonsense=1"
        ] {
            #expect(throws: StoreError(.denied)) { _ = try PostgresAddress(text) }
        }
        let address = try PostgresAddress(
            "postgresql://sealbell:canary-1@one:5432,two:5433/relay?sslmode=require", password: nil)
        #expect(address.description == "one:5432,two:5433/relay" && address.database == "relay")
        #expect(!"\(String(reflecting: address))".contains("canary-1"))
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains("canary-1"))
    }

    @Test("A wrong password, a wrong role and a missing database are denied")
    func denied() async throws {
        let cluster = try await PostgresCluster.start(PostgresCluster.Options(password: "right"))
        let clock = ManualClock()
        func open(_ url: String, _ password: String?) async throws {
            let secret = password.map { Secret(Array($0.utf8)) }
            let store = try await PostgresStore(
                try PostgresAddress(url, password: secret), owner: Self.owner, world: clock.world(seed: 1))
            await store.close()
        }
        await #expect(throws: StoreError(.denied)) { try await open(cluster.url, "wrong") }
        await #expect(throws: StoreError(.denied)) { try await open(cluster.url, nil) }
        await #expect(throws: StoreError(.denied)) { try await open(cluster.url(of: "nowhere"), "right") }
        try await open(cluster.url, "right")
        // Never in clear where the address asks for TLS.
        var brief = PostgresLimits()
        brief.openingPatience = .milliseconds(200)
        await #expect(throws: StoreError(.unavailable)) {
            _ = try await PostgresStore(
                try PostgresAddress(cluster.url + "?sslmode=require", password: Secret(Array("right".utf8))),
                owner: Self.owner, limits: brief, world: clock.world(seed: 1))
        }
        // A role that may connect and make nothing.
        try await cluster.execute("CREATE DATABASE foreign_one")
        await #expect(throws: StoreError(.denied)) { try await open(cluster.url(of: "foreign_one"), "right") }
        await cluster.end()
    }

    @Test("A server that does not wait for its disk is refused, unless that is what is to be shown")
    func notDurable() async throws {
        let database = try await PostgresDatabase()
        let cluster = try await PostgresCluster.shared
        try await cluster.execute("ALTER DATABASE \(try name(database.url)) SET synchronous_commit = off")
        await #expect(throws: StoreError(.notDurable)) { try await database.open(Self.owner) }
        let store = try await PostgresStore(
            try PostgresAddress(database.url), owner: Self.owner, limits: database.limits,
            synchronous: .dangerNormal, world: database.clock.world(seed: 1))
        await store.close()
        let cases: [(Durability, Bool)] = [
            (Durability(fsync: "on", fullPageWrites: "on", commit: "on", standbys: ""), true),
            (Durability(fsync: "off", fullPageWrites: "on", commit: "on", standbys: ""), false),
            (Durability(fsync: "on", fullPageWrites: "off", commit: "on", standbys: ""), false),
            (Durability(fsync: "on", fullPageWrites: "on", commit: "local", standbys: ""), true),
            (Durability(fsync: "on", fullPageWrites: "on", commit: "local", standbys: "s1"), false),
            (Durability(fsync: "on", fullPageWrites: "on", commit: "remote_apply", standbys: "s1"), true)
        ]
        for (said, isEnough) in cases { #expect(said.isEnough == isEnough, "\(said)") }
    }

    @Test("A newer schema is refused if it breaks, and worked on if it does not")
    func newerSchema() async throws {
        let database = try await PostgresDatabase()
        await (try database.open(Self.owner)).close()
        let cluster = try await PostgresCluster.shared
        let insert = "INSERT INTO migrations VALUES (1000, 'later', false, now(), now())"
        try await cluster.execute(insert, database: try name(database.url))
        let store = try await database.open(Self.owner)
        #expect(try await store.settle(setting: "check", to: [1]) == [1])
        await store.close()
        #expect(try await look(database).schema == .newer)
        try await cluster.execute("UPDATE migrations SET breaks = true", database: try name(database.url))
        await #expect(throws: StoreError(.newerSchema)) { try await database.open(Self.owner) }
        await #expect(throws: StoreError(.newerSchema)) { try await look(database) }
    }

    private func look(_ database: PostgresDatabase) async throws -> PostgresInspection {
        try await PostgresInspection.look(at: try PostgresAddress(database.url), within: .seconds(30))
    }

    @Test("A migration that was begun and not finished is waited for, and then named")
    func halfMigrated() async throws {
        let database = try await PostgresDatabase()
        await (try database.open(Self.owner)).close()
        let cluster = try await PostgresCluster.shared
        let name = try name(database.url)
        let begun = "UPDATE migrations SET finished_at = NULL WHERE number = 1"
        try await cluster.execute(begun, database: name)
        var limits = database.limits
        limits.migrationPatience = .milliseconds(300)
        await #expect(throws: StoreError(.halfMigrated)) {
            try await database.open(Self.owner, limits: limits)
        }
        #expect(try await look(database).schema == .half(step: 1))
        limits.migrationPatience = .seconds(60)
        async let opened = database.open(Self.owner, limits: limits)
        try await cluster.execute("UPDATE migrations SET finished_at = now()", database: name)
        await (try opened).close()
    }

    @Test("A wrong key is refused, and the check value stays as it was")
    func wrongKey() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(Self.owner)
        let world = database.clock.world(seed: 2)
        let keys = AtRestKeys.generate(world)
        _ = try await SealedStore(engine: store, keys: keys, world: world)
        let checks = try await look(database).checks
        await #expect(throws: StoreError(.wrongKey)) {
            _ = try await SealedStore(engine: store, keys: AtRestKeys.generate(world), world: world)
        }
        #expect(try await look(database).checks == checks && checks.count == 1)
        await store.close()
    }

    @Test("A row that we cannot have written is none, and stands aside as it is")
    func corrupt() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(Self.owner)
        let now = database.clock.now
        let records = [PostgresSamples.record(1), PostgresSamples.record(2)]
        _ = try await store.apply(records.map { .put($0, if: .any) }, now: now)
        let cluster = try await PostgresCluster.shared
        let name = try name(database.url)
        let mark = "UPDATE records SET state = 9 WHERE revision = 1"
        try await cluster.execute(mark, database: name)
        let found = try await store.find([1, 2].map(PostgresSamples.digest), now: now)
        #expect(found[0] == nil && found[1] != nil)
        try await asked(for: "the record aside") { try await store.setRecordsAside([]) == 1 }
        let change = StoredChange.expire(PostgresSamples.digest(1), at: now, if: .any)
        _ = try await store.apply([change], now: now)
        let left = try await cluster.execute(
            "SELECT state, octet_length(body) FROM records WHERE state = 9", database: name)
        #expect(left == "9|40")
        await store.close()
    }

    @Test("A lock that is not given, and a statement that takes too long, are unavailable and write nothing")
    func timeouts() async throws {
        let database = try await PostgresDatabase()
        var limits = database.limits
        let cluster = try await PostgresCluster.shared
        let name = try name(database.url)
        for (lock, statement) in [
            // Long enough for what opens the store.
            (Duration.seconds(2), Duration.seconds(20)), (.seconds(20), .seconds(2))
        ] {
            (limits.lockTimeout, limits.statementTimeout) = (lock, statement)
            let store = try await database.open(Self.owner, limits: limits)
            let holding = "BEGIN; LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)"
            async let held: String = cluster.execute(holding, database: name)
            let question = """
                SELECT pid FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
                AND relation = 'outbox'::regclass
                """
            let holder = try await named("who holds the lock") {
                try await cluster.execute(question, database: name)
            }
            let push = PostgresSamples.push(1, database.clock)
            await #expect(throws: StoreError(.unavailable)) {
                _ = try await store.accept([push], changes: [], now: database.clock.now)
            }
            try await cluster.execute("SELECT pg_terminate_backend(\(holder))")
            // It was ended by us.
            _ = try? await held
            #expect(try await store.load().rows == 0)
            await store.close()
        }
    }

    @Test("What was refused when a connection first ran it passes there later")
    func firstRefused() async throws {
        let database = try await PostgresDatabase()
        var limits = database.limits
        limits.connections = 1
        let store = try await database.open(Self.owner, limits: limits)
        let now = database.clock.now
        let pushes = (1...2).map { PostgresSamples.push($0, database.clock) }
        try await store.bar(true)
        await #expect(throws: StoreError(.moved)) { try await store.renew(for: .seconds(20)) }
        await #expect(throws: StoreError(.moved)) {
            try await store.accept([pushes[0]], changes: [], now: now)
        }
        try await store.bar(false)
        try await store.renew(for: .seconds(20))
        for push in pushes {
            guard case .committed = try await store.accept([push], changes: [], now: now) else {
                Issue.record("the push was refused")
                return
            }
        }
        #expect(try await store.load().rows == 2)
        await store.close()
    }

    @Test("A caller that is cancelled leaves its write whole")
    func cancelled() async throws {
        let database = try await PostgresDatabase()
        let store = try await database.open(Self.owner)
        let push = PostgresSamples.push(1, database.clock)
        let accepted = try await withThrowingTaskGroup(of: StoredAccepted.self) { group in
            group.addTask { try await store.accept([push], changes: [], now: database.clock.now) }
            group.cancelAll()
            return try await group.next()
        }
        guard case .committed = accepted else {
            Issue.record("the call was cut short")
            return
        }
        #expect(try await store.owed(push.id)?.id == push.id)
        await store.close()
        await #expect(throws: StoreError(.unavailable)) { _ = try await store.load() }
    }
}
