import Foundation
import PostgresStore
import PushModel
import PushTesting
import Testing

/// What was deleted is in no file of the server: tables, indexes, statistics, log.
@Suite("PostgreSQL forgets", .timeLimit(.minutes(30)))
struct PostgresForgettingTests {
    private static let owner = OwnerID(Digest16(high: 6, low: 1))
    private let clock = ManualClock()

    /// A server as the guide wants it: log segments are removed, and the role may move the log on.
    private func cluster(_ grants: Bool) async throws -> PostgresCluster {
        let cluster = try await PostgresCluster.start(
            PostgresCluster.Options(settings: [
                "wal_recycle": "off", "wal_keep_size": "0", "min_wal_size": "32MB", "autovacuum": "off"
            ]))
        if grants {
            try await cluster.execute("GRANT pg_checkpoint TO sealbell")
            try await cluster.execute(
                "GRANT EXECUTE ON FUNCTION pg_switch_wal() TO sealbell", database: "sealbell")
        }
        return cluster
    }

    private func open(
        _ cluster: PostgresCluster, _ limits: PostgresLimits = PostgresLimits()
    ) async throws -> PostgresStore {
        var limits = limits
        limits.connections = 2
        return try await PostgresStore(
            try PostgresAddress(cluster.url), owner: Self.owner, limits: limits, world: clock.world(seed: 5))
    }

    /// Distinct content, as long as a sealed push.
    private func canary(_ text: String) -> [UInt8] { Array(String(repeating: "\(text)|", count: 40).utf8) }

    /// Files in which a text stands.
    private func places(_ text: String, _ cluster: PostgresCluster) throws -> [String] {
        let folder = URL(fileURLWithPath: cluster.data)
        let wanted = Data("\(text)|\(text)|".utf8)
        var found: [String] = []
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        while let file = files?.nextObject() as? URL {
            // Directories, and what the server has just removed.
            guard let bytes = try? Data(contentsOf: file) else { continue }
            if bytes.range(of: wanted) != nil { found.append(file.lastPathComponent) }
        }
        return found
    }

    @Test("Settled pushes, forgotten, expired and replaced records are gone from every file; the rest stays")
    func forgets() async throws {
        let cluster = try await cluster(true)
        let store = try await open(cluster)
        let now = clock.now
        var pushes = (0..<3 as Range<UInt64>).map { PostgresSamples.push($0, clock) }
        pushes[0].sealed = canary("settled-push")
        pushes[1].sealed = canary("withdrawn-push")
        pushes[2].sealed = canary("owed-push")
        let accepted = try await store.accept(pushes, changes: [], now: now)
        guard case .committed(let admissions) = accepted else { return }
        var records = (0..<5 as Range<UInt64>).map { PostgresSamples.record($0) }
        let names = ["deleted-record", "expired-record", "replaced-record", "standing-record", "owned-record"]
        for (index, name) in names.enumerated() { records[index].body = canary(name) }
        records[4].owner = PostgresSamples.digest(88)
        _ = try await store.apply(records.map { .put($0, if: .any) }, now: now)
        try await cluster.execute("ANALYZE", database: "sealbell")
        try await cluster.execute("CHECKPOINT")
        let gone = ["settled-push", "withdrawn-push"] + names.filter { $0 != "standing-record" }
        for name in gone { #expect(try !places(name, cluster).isEmpty, "\(name) was there") }

        let steps = zip(pushes, admissions).prefix(2).enumerated().map { index, pair in
            StoredSettlement(
                row: 1, id: pair.0.id, epoch: 1, mark: nil, step: index == 0 ? .settle : .withdraw,
                first: .accepted)
        }
        #expect(try await store.settle(Array(steps), feedback: [], now: now) == [true, true])
        var anew = records[2]
        anew.body = canary("newer-record")
        _ = try await store.apply(
            [
                .delete(records[0].key, if: .any), .expire(records[1].key, at: now, if: .any),
                .put(anew, if: .any)
            ], now: now)
        #expect(try await store.forget(owner: PostgresSamples.digest(88), limit: 10) == 1)
        #expect(try await store.forgetNow() == .all)
        for name in gone { #expect(try places(name, cluster).isEmpty, "\(name) is gone") }
        for name in ["owed-push", "standing-record", "newer-record"] {
            #expect(try !places(name, cluster).isEmpty, "\(name) stays")
        }
        #expect(try await store.find([anew.key], now: now)[0]?.body == anew.body)
        await store.close()
        await cluster.end()
    }

    @Test(
        "Without the right to move the log, tables are forgotten and the rest is said; a user in the way too")
    func says() async throws {
        let cluster = try await cluster(false)
        let store = try await open(cluster)
        #expect(try await store.forgetNow() == .tables)
        let holding = "BEGIN; LOCK TABLE records IN ACCESS SHARE MODE; SELECT pg_sleep(600)"
        async let held: String = cluster.execute(holding, database: "sealbell")
        let question = """
            SELECT pid FROM pg_locks WHERE mode = 'AccessShareLock' AND granted
            AND relation = 'records'::regclass AND pid <> pg_backend_pid()
            """
        let holder = try await named("who holds the lock") {
            try await cluster.execute(question, database: "sealbell")
        }
        #expect(try await store.forgetNow() == .busy)
        try await cluster.execute("SELECT pg_terminate_backend(\(holder))")
        // It was ended by us.
        _ = try? await held
        #expect(try await store.forgetNow() == .tables)
        await store.close()
        await cluster.end()
    }
    @Test(
        "A large outbox is neither vacuumed nor written anew by a relay, and that is said",
        arguments: [(vacuumed: true, bytes: PostgresLimits().vacuumBytes), (vacuumed: false, bytes: 0)])
    func large(_ row: (vacuumed: Bool, bytes: Int64)) async throws {
        let cluster = try await cluster(true)
        var limits = PostgresLimits()
        limits.vacuumBytes = row.bytes
        limits.rewriteBytes = 0
        let store = try await open(cluster, limits)
        let vacuums = "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'outbox'"
        #expect(try await store.forgetNow() == .tooLarge)
        #expect(try await cluster.execute(vacuums, database: "sealbell") == (row.vacuumed ? "1" : "0"))
        await store.close()
        await cluster.end()
    }
}
