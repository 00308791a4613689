import AtRest
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@testable import SQLiteStore

@Suite("What was concluded from a record holds while it stands as it was seen", .timeLimit(.minutes(30)))
struct SightTests {
    private static let owner = OwnerID(Digest16(high: 5, low: 5))
    private static let space = Space(core: "sight")
    private let clock = ManualClock()

    private static func key(_ number: Int) -> RecordKey { RecordKey(space, Secret("name \(number)".utf8)) }

    private static func record(
        _ number: Int, _ body: String, expires: UnixTime = .distantFuture
    ) -> Record {
        Record(
            key: key(number), touchedAt: UnixTime(milliseconds: 1), expiresAt: expires,
            body: Secret(body.utf8))
    }

    /// A store with records 1 and 2, and how they stood.
    private static func stage(
        _ clock: ManualClock, expires: UnixTime = .distantFuture
    ) async throws -> (store: SealedStore, engine: MemoryStore, sights: [RecordSight]) {
        let world = clock.world(seed: 3)
        let engine = MemoryStore(owner: owner, sharing: MemoryStore.Shared(rows: 10), clock: world.now)
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        let puts = [record(1, "one", expires: expires), record(2, "two"), record(3, "three")]
        _ = try await store.apply(puts.map { .put($0, if: .absent) })
        let seen = try await store.find([key(1), key(2), key(3)], seeing: 2)
        #expect(seen.records.compactMap { $0?.text } == ["one", "two", "three"])
        #expect(seen.sights.count == 2)
        return (store, engine, seen.sights.compactMap(\.self))
    }

    @Test("Others are found while they stand, opened, and in their order; what is not there has no sight")
    func standing() async throws {
        let (store, _, sights) = try await Self.stage(ManualClock())
        let found = try #require(try await store.find([Self.key(9), Self.key(3)], while: sights))
        #expect(found.count == 2 && found[0] == nil && found[1]?.text == "three")
        #expect(try await store.find([Self.key(3)], while: [])?.count == 1)
        let none = try await store.find([Self.key(9), Self.key(1)], seeing: 1)
        #expect(none.sights.count == 1 && none.sights[0] == nil && none.records[1] != nil)
    }

    @Test(
        "Whatever becomes of one of them, nothing is concluded any more",
        arguments: ["written", "written the same", "expired", "deleted", "changed beneath"])
    func changes(_ what: String) async throws {
        let (store, engine, sights) = try await Self.stage(clock)
        switch what {
        case "written": _ = try await store.apply([.put(Self.record(2, "more"), if: .any)])
        case "written the same": _ = try await store.apply([.put(Self.record(2, "two"), if: .any)])
        case "expired": _ = try await store.apply([.expire(Self.key(2), at: clock.now, if: .any)])
        case "deleted": _ = try await store.apply([.delete(Self.key(2), if: .any)])
        default:
            var row = sights[1].row
            row.body[40] ^= 1
            #expect(try await engine.reseal([.record(row.key, revision: row.revision, body: row.body)]) == 1)
        }
        #expect(try await store.find([Self.key(3)], while: sights) == nil)
        #expect(try await store.find([Self.key(3)], while: [sights[0]])?[0] != nil, "the other one stands")
    }

    @Test("What has ended by time is not concluded from")
    func ended() async throws {
        let (store, _, sights) = try await Self.stage(clock, expires: clock.now + .seconds(60))
        #expect(try await store.find([Self.key(3)], while: sights) != nil)
        clock.advance(by: .seconds(61))
        #expect(try await store.find([Self.key(3)], while: sights) == nil)
    }

    @Test("Keys that are exchanged end every conclusion: a row of a key that is gone opens no more")
    func keys() async throws {
        let world = ManualClock().world(seed: 4)
        let engine = MemoryStore(
            owner: Self.owner, sharing: MemoryStore.Shared(rows: 10), clock: world.now)
        let keys = AtRestKeys.generate(world)
        let store = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
        _ = try await store.apply([.put(Self.record(1, "one"), if: .absent)])
        let sight = try #require(try await store.find([Self.key(1)], seeing: 1).sights[0])
        let rotation = SealKeyRotation(store, engine, limits: StoreRotationTests.limits)
        try await rotation.adopt(try #require(keys.rotated(world)))
        #expect(try await store.find([], while: [sight]) == nil)
    }

    @Test("Rows that are kept have a bound, and those that are asked for again stay")
    func frequentRows() {
        func row(_ number: UInt64, bytes: Int = 100, address: Digest16? = nil) -> StoredRecord {
            StoredRecord(
                key: Digest16(high: number, low: number), space: "a/server", owner: nil, address: address,
                version: 0, state: .live, touchedAt: UnixTime(milliseconds: 1), expiresAt: .distantFuture,
                revision: 1, body: [UInt8](repeating: 7, count: bytes))
        }
        var rows = FrequentRows()
        let hot = Digest16(high: 0, low: 0)
        for number in 0..<20_000 as Range<UInt64> {
            rows.keep(row(number))
            #expect(rows.row(hot) != nil)
            #expect(rows.count <= 4_096)
        }
        #expect(rows.row(Digest16(high: 1, low: 1)) == nil)
        rows.forget(hot)
        #expect(rows.row(hot) == nil)
        rows.keep(row(1, bytes: 1_025))
        rows.keep(row(2, address: hot))
        #expect(rows.row(Digest16(high: 1, low: 1)) == nil && rows.row(Digest16(high: 2, low: 2)) == nil)
        rows.forgetAll()
        #expect(rows.count == 0)
    }
}

extension Record {
    fileprivate var text: String { body.reveal { String(decoding: $0, as: UTF8.self) } }
}
