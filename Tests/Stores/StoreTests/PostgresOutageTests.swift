import PostgresStore
import PushModel
import PushTesting
import Testing

/// Servers that go away in the midst of it; each test has its own.
@Suite("A PostgreSQL store and a server that goes away", .timeLimit(.minutes(30)))
struct PostgresOutageTests {
    private static let owner = OwnerID(Digest16(high: 9, low: 1))
    private let clock = ManualClock()

    /// - Parameter answer: how long a server may take to answer.
    private func limits(
        patience: Duration = .seconds(2), answer: Duration = .seconds(20)
    ) -> PostgresLimits {
        var limits = PostgresLimits()
        limits.connections = 2
        limits.patience = patience
        limits.statementTimeout = answer
        limits.answerGrace = .milliseconds(500)
        limits.openingPatience = .seconds(300)
        return limits
    }

    private func open(_ url: String, _ limits: PostgresLimits? = nil) async throws -> PostgresStore {
        try await PostgresStore(
            try PostgresAddress(url), owner: Self.owner, limits: limits ?? self.limits(),
            world: clock.world(seed: 3))
    }

    /// What became of one call.
    private enum Told: Sendable { case written, uncertain, unavailable }

    private func accept(_ push: StoredPush, _ store: PostgresStore) async -> Told? {
        do throws(StoreError) {
            let accepted = try await store.accept([push], changes: [], now: clock.now)
            guard case .committed(let admissions) = accepted, case .owed = admissions[0] else { return nil }
            return .written
        } catch {
            return switch error.code {
            case .uncertain: .uncertain
            case .unavailable: .unavailable
            default: nil
            }
        }
    }

    @Test("A crash in the midst of commits: what was acknowledged stands, what was refused does not")
    func crash() async throws {
        let cluster = try await PostgresCluster.start()
        let store = try await open(cluster.url)
        let count = Noted(0)
        let told = try await withThrowingTaskGroup(of: [(PushID, Told)].self) { group in
            for caller in 0..<16 as Range<UInt64> {
                group.addTask { [clock] in
                    var heard: [(PushID, Told)] = []
                    // Ends with the server; the bound is beyond what it takes until then.
                    for number in 0..<100_000 as Range<UInt64> {
                        let push = PostgresSamples.push(caller * 1_000_000 + number, clock)
                        let told = try #require(await accept(push, store))
                        heard.append((push.id, told))
                        guard told == .written else { break }
                        count.change { $0 += 1 }
                    }
                    return heard
                }
            }
            await count.until { $0 >= 300 }
            try await cluster.kill()
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(told.contains { $0.1 != .written })
        try await cluster.startAgain()
        let text = try await cluster.execute("SELECT id FROM outbox", database: "sealbell")
        let rows = text.split(separator: "\n")
        let standing = Set(rows.compactMap { PushID(text: String($0)) })
        #expect(rows.count == standing.count)
        for (id, told) in told where told != .uncertain {
            #expect(standing.contains(id) == (told == .written), "\(told)")
        }
        #expect(standing.isSubset(of: Set(told.map(\.0))))
        // The same store works on, and its count is that of the table.
        let push = PostgresSamples.push(77_000_000, clock)
        #expect(try await untilWritten(push, store))
        #expect(try await store.load().rows == rows.count + 1)
        #expect(try await store.reclaim(limit: 100_000) == rows.count + 1)
        await store.close()
        await cluster.end()
    }

    /// Whether a push is accepted once the server is back; each attempt waits for a connection.
    private func untilWritten(_ push: StoredPush, _ store: PostgresStore) async throws -> Bool {
        var told = Told?.none
        try await asked(for: "an answer of the server that is back") {
            told = await accept(push, store)
            return told != .unavailable
        }
        return told == .written
    }

    @Test("While the server is away calls are unavailable within their patience; when it is back they pass")
    func awayAndBack() async throws {
        let cluster = try await PostgresCluster.start()
        let store = try await open(cluster.url)
        let first = PostgresSamples.push(1, clock)
        #expect(await accept(first, store) == .written)
        try await cluster.stop()
        let began = ContinuousClock.now
        #expect(await accept(PostgresSamples.push(2, clock), store) == .unavailable)
        await #expect(throws: StoreError(.unavailable)) {
            _ = try await store.find([PostgresSamples.digest(1)], now: clock.now)
        }
        // Bound: twice their patience, on a machine that has hardly any time for them.
        #expect(ContinuousClock.now - began < .seconds(300))
        try await cluster.startAgain()
        #expect(try await untilWritten(PostgresSamples.push(3, clock), store))
        #expect(try await store.owed(first.id) != nil)
        await store.close()
        await cluster.end()
    }

    @Test("A server that stands still makes a write uncertain, and what it wrote is taken back")
    func standingStill() async throws {
        let cluster = try await PostgresCluster.start()
        // Long enough for what opens the store, and for a commit.
        let store = try await open(cluster.url, limits(patience: .seconds(20), answer: .seconds(5)))
        #expect(await accept(PostgresSamples.push(1, clock), store) == .written)
        cluster.suspend()
        let push = PostgresSamples.push(2, clock)
        #expect(await accept(push, store) == .uncertain)
        cluster.resume()
        // Whether the second was written is now known, and neither is in anybody's memory.
        var count = 0
        try await asked(for: "pushes to take back") {
            // The first calls find connections that are lost.
            do { count = try await store.reclaim(limit: 10) } catch { return false }
            return count > 0
        }
        let stands = try await store.owed(push.id) != nil
        #expect(count == (stands ? 2 : 1))
        let load = try await store.load()
        #expect(load.rows == count && load.lanes == [PostgresSamples.lane: count])
        await store.close()
        await cluster.end()
    }

    @Test("What finds no room in the queue is refused at once")
    func fullQueue() async throws {
        let cluster = try await PostgresCluster.start()
        // Long enough for what opens the store; whom nobody answers waits no longer than they do.
        var limits = limits(patience: .seconds(7), answer: .seconds(5))
        limits.connections = 1
        limits.waitingJobs = 4
        let store = try await open(cluster.url, limits)
        cluster.suspend()
        let told = try await withThrowingTaskGroup(of: Told.self) { group in
            for number in 0..<12 as Range<UInt64> {
                group.addTask { [clock] in
                    try #require(await accept(PostgresSamples.push(number, clock), store))
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(told.count { $0 == .unavailable } >= 7, "one batch is under way, and four wait")
        cluster.resume()
        await store.close()
        await cluster.end()
    }

    @Test("A standby is not written to; when it becomes the primary the store follows, and nothing is lost")
    func failover() async throws {
        let primary = try await PostgresCluster.start()
        let standby = try await primary.standby()
        var brief = limits()
        brief.openingPatience = .milliseconds(200)
        await #expect(throws: StoreError(.unavailable)) { try await open(standby.url, brief) }
        let store = try await open(PostgresCluster.url(of: [standby, primary]))
        var written: [PushID] = []
        for number in 0..<20 as Range<UInt64> {
            let push = PostgresSamples.push(number, clock)
            #expect(await accept(push, store) == .written)
            written.append(push.id)
        }
        try await primary.kill()
        try await standby.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        try await standby.execute("SELECT pg_reload_conf()")
        try await standby.promote()
        #expect(try await untilWritten(PostgresSamples.push(900, clock), store))
        for id in written { #expect(try await store.owed(id) != nil) }
        await store.close()
        await primary.end()
        await standby.end()
    }

    @Test("A commit whose wait for the standby was cut short is uncertain, although it stands here")
    func cutShort() async throws {
        let primary = try await PostgresCluster.start()
        let standby = try await primary.standby()
        var limits = limits()
        limits.statementTimeout = .seconds(30)
        let store = try await open(primary.url, limits)
        standby.suspend()
        let push = PostgresSamples.push(1, clock)
        async let told = accept(push, store)
        let cut = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        try await asked(for: "a commit that waits for the standby") { try await primary.execute(cut) != "0" }
        #expect(await told == .uncertain)
        standby.resume()
        #expect(try await store.owed(push.id) != nil)
        await store.close()
        await primary.end()
        await standby.end()
    }
}
