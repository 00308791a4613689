@testable import PostgresStore
import PushModel
import PushTesting
import Testing

@Suite("A database server's clock that leaps, and a server that takes over", .timeLimit(.minutes(30)))
struct ServerClockTests {
    private let start = ContinuousClock.now

    private func leap(_ clock: inout ServerClock, server: Int64, after span: Duration) -> Duration {
        clock.leap(
            at: ServerClock.Look(
                server: UnixTime(seconds: server), asked: start + span,
                answered: start + span + .milliseconds(5), instant: start + span))
    }

    @Test("A leap counts for one lease, a slow answer is none, and one back neither")
    func spans() {
        var clock = ServerClock()
        #expect(leap(&clock, server: 1_000, after: .zero) == .zero)
        #expect(leap(&clock, server: 1_005, after: .seconds(5)) == .zero)
        #expect(leap(&clock, server: 1_025, after: .seconds(10)) > .seconds(14))
        #expect(leap(&clock, server: 1_044, after: .seconds(29)) > .seconds(14))
        #expect(leap(&clock, server: 1_046, after: .seconds(31)) == .zero)
        #expect(leap(&clock, server: 900, after: .seconds(36)) == .zero)
        #expect(leap(&clock, server: 905, after: .seconds(41)) == .zero)
    }

    /// Those who renewed by the clock of the server before this one may live.
    @Test("One that starts when another server has taken over waits for a lease before it takes anything")
    func newcomer() async throws {
        let database = try await PostgresDatabase()
        let living = try await database.open(OwnerID(Digest16(high: 7, low: 1)))
        try await living.renew(for: .seconds(20))
        let pushes = (0..<3 as Range<UInt64>).map { PostgresSamples.push($0, database.clock, parked: true) }
        _ = try await living.accept(pushes, changes: [], now: database.clock.now)
        let note = try #require(try await living.setting(ClockServer.setting).flatMap { ClockServer($0) })
        // What a standby has of the server that it followed.
        let other = ClockServer(startedAt: note.startedAt - 1, seenAt: .distantPast)
        try await living.put(setting: ClockServer.setting, to: other.bytes)
        database.clock.advance(by: .seconds(15))
        // By the new server's clock the owner is dead; it measured fifteen seconds.
        database.clock.skewWall(by: .seconds(15))
        let newcomers = [
            try await database.open(OwnerID(Digest16(high: 7, low: 2))),
            try await database.open(OwnerID(Digest16(high: 7, low: 3)))
        ]
        for newcomer in newcomers {
            #expect(try await newcomer.takeOver([PostgresSamples.lane], limit: 10) == 0)
            let others = try await newcomer.livingOwners()
            #expect(others.contains(living.owner))
        }
        database.clock.advance(by: .seconds(21))
        #expect(try await newcomers[1].takeOver([PostgresSamples.lane], limit: 10) == 3)
        for store in newcomers + [living] { await store.close() }
    }

    @Test("A server that was first seen in years to come was not, and the dead are dead")
    func note() async throws {
        let database = try await PostgresDatabase()
        let gone = try await database.open(OwnerID(Digest16(high: 7, low: 1)))
        try await gone.renew(for: .seconds(20))
        let push = PostgresSamples.push(1, database.clock, parked: true)
        _ = try await gone.accept([push], changes: [], now: database.clock.now)
        let note = try #require(try await gone.setting(ClockServer.setting).flatMap { ClockServer($0) })
        let changed = ClockServer(startedAt: note.startedAt, seenAt: .distantFuture)
        try await gone.put(setting: ClockServer.setting, to: changed.bytes)
        let store = try await database.open(OwnerID(Digest16(high: 7, low: 2)))
        // As where another server has taken over: for the span of a lease nobody is told dead.
        for _ in 0..<2 {
            _ = try await store.livingOwners()
            database.clock.advance(by: .seconds(21))
        }
        #expect(try await store.takeOver([PostgresSamples.lane], limit: 10) == 1)
        for store in [store, gone] { await store.close() }
    }

    @Test("What is given up is free at once, whatever the clock says")
    func givenUp() async throws {
        let database = try await PostgresDatabase()
        let gone = try await database.open(OwnerID(Digest16(high: 7, low: 1)))
        let store = try await database.open(OwnerID(Digest16(high: 7, low: 2)))
        try await gone.renew(for: .seconds(20))
        try await store.renew(for: .seconds(20))
        let push = PostgresSamples.push(1, database.clock, parked: true)
        _ = try await gone.accept([push], changes: [], now: database.clock.now)
        database.clock.skewWall(by: .seconds(15))
        await gone.close()
        #expect(try await store.takeOver([PostgresSamples.lane], limit: 10) == 1)
        await store.close()
    }
}
