import AtRest
import PushModel
import PushTesting
import SQLiteStore
import Synchronization
import Testing

@testable import RelayProgram

@Suite("What is counted of pushes between two looks", .timeLimit(.minutes(30)))
struct HistoryTallyTests {
    private static func digest(_ number: UInt64) -> Digest16 { Digest16(high: 1, low: number) }

    @Test("Nothing is counted before it is turned on, and nothing is left when it is turned off")
    func turned() {
        let tally = HistoryTally()
        let now = UnixTime(seconds: 1)
        tally.note(Self.digest(1), .delivered, .ok, at: now)
        #expect(tally.take().counts.isEmpty)
        tally.turn(on: true)
        tally.note(Self.digest(1), .delivered, .ok, at: now)
        tally.turn(on: true)
        #expect(tally.take().counts.count == 1, "who is on stays on")
        tally.note(Self.digest(1), .refused, .badDeviceToken, at: now)
        tally.turn(on: false)
        let left = tally.take()
        #expect(left.counts.isEmpty && left.uncounted == 0)
    }

    @Test("A registration's pushes are one count for each word, taken once")
    func sums() {
        let tally = HistoryTally()
        tally.turn(on: true)
        for second in 1...3 {
            tally.note(Self.digest(7), .delivered, .ok, at: UnixTime(seconds: Int64(second)))
        }
        tally.note(Self.digest(7), .refused, .badDeviceToken, at: UnixTime(seconds: 4))
        tally.note(Self.digest(7), .delayed, .badDeviceToken, at: UnixTime(seconds: 5))
        tally.note(Self.digest(7), .refused, .unknown, at: UnixTime(seconds: 6))
        let counts = Set(tally.take().counts)
        func count(
            _ event: RegistrationEvent, _ reason: String, _ count: UInt32, _ last: Int64
        ) -> RegistrationCount {
            RegistrationCount(
                registration: Self.digest(7), event: event, reason: reason, count: count,
                last: UnixTime(seconds: last))
        }
        #expect(
            counts == [
                count(.delivered, "", 3, 3), count(.refused, "BadDeviceToken", 1, 4),
                count(.delayed, "BadDeviceToken", 1, 5), count(.refused, "Unknown", 1, 6)
            ])
        #expect(tally.take().counts.isEmpty)
    }

    @Test("The tables have a bound; what is beyond is told, and deliveries take no room of faults")
    func bounded() {
        let tally = HistoryTally()
        tally.turn(on: true)
        let now = UnixTime(seconds: 1)
        let many = UInt64(2 * HistoryTally.deliveries)
        for number in 0..<many { tally.note(Self.digest(number), .delivered, .ok, at: now) }
        tally.note(Self.digest(5), .refused, .unknown, at: now)
        let taken = tally.take()
        #expect(taken.counts.count == HistoryTally.deliveries + 1)
        #expect(taken.uncounted == HistoryTally.deliveries)
        #expect(taken.counts.contains { $0.event == .refused })
        // The table is free again.
        tally.note(Self.digest(many), .delivered, .ok, at: now)
        let next = tally.take()
        #expect(next.counts.map(\.registration) == [Self.digest(many)] && next.uncounted == 0)
    }

    @Test("It is told since when not all was counted, once in the log, and a reload without it forgets that")
    func gap() async throws {
        let clock = ManualClock()
        let world = clock.world(seed: 1)
        let folder = try TemporaryFolder()
        let engine = try SQLiteStore(
            path: folder.path + "/relay.sqlite", owner: OwnerID(Self.digest(9)), world: clock.world(seed: 2))
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        let told = Mutex(0)
        let keeper = HistoryKeeper(
            store, world: world, journal: Journal { _, _, _ in told.withLock { $0 += 1 } })
        keeper.turn(on: true)
        keeper.note(Self.digest(1), .delivered, .ok, at: clock.now)
        await keeper.write()
        #expect(keeper.gap == nil)
        let start = clock.now
        for round in 0..<2 {
            for number in 0..<UInt64(2 * HistoryTally.deliveries) {
                keeper.note(Self.digest(number), .delivered, .ok, at: clock.now)
            }
            await keeper.write()
            #expect(keeper.gap?.since == start - .seconds(60) && keeper.gap?.until == clock.now, "\(round)")
            clock.advance(by: .seconds(60))
        }
        #expect(told.withLock { $0 } == 1)
        keeper.turn(on: false)
        #expect(keeper.gap == nil)
        try engine.close()
    }
}
