import AtRest
import DeliveryTesting
import MemoryStore
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What a server leaves behind goes in as many steps as it is large, whatever one of its rows has become.
@Suite("Zulip servers that leave much behind", .timeLimit(.minutes(30)))
struct LeavingBoundsTests {
    private static let instance = TestRelay.instance
    private static let server = "1c29d774-2414-40cc-a7d1-4fb445cf9726"

    private struct Rig {
        let clock = ManualClock()
        let engine: MemoryStore
        let store: SealedStore
        let servers: ZulipServers
        let keys = ZulipRecordNames(LeavingBoundsTests.instance)

        init() async throws {
            let world = clock.world(seed: 9)
            let memory = try await SealedMemory(world)
            (engine, store) = (memory.engine, memory.store)
            servers = ZulipServers(LeavingBoundsTests.instance, store, world: world)
        }

        /// A server that has left so many realms, the first of them with so many devices.
        func leave(realms: Int, devices: Int) async throws {
            let id = try #require(UUIDText(LeavingBoundsTests.server))
            let note = Record(key: keys.leaving(id), touchedAt: clock.now, body: Secret(id.bytes))
            var changes: [Change] = [.put(note, if: .any)]
            for number in 0..<realms {
                let realm = ZulipRealm(
                    id: UUIDText(high: 7, low: UInt64(number)), server: id, isLocallyDeleted: false)
                changes.append(.put(realm.record(keys, now: clock.now), if: .any))
                guard number == 0 else { continue }
                for device in 0..<devices {
                    let record = Record(
                        key: keys.device(realm.tenancy, TokenID(UInt64(device))),
                        owner: keys.devices(of: realm.tenancy), touchedAt: clock.now, body: Secret([1]))
                    changes.append(.put(record, if: .any))
                }
            }
            #expect(try await store.apply(changes) == .committed)
            clock.advance(by: .seconds(61))
        }

        func rows(_ room: String) async throws -> [StoredRecord] {
            try await engine.page(
                .space("\(LeavingBoundsTests.instance.text)/\(room)"), after: 0, limit: 100_000,
                now: clock.now)
        }

        /// How many steps it took until nothing was left to do.
        func sweep() async throws -> Int {
            for step in 1...10_000 where try await servers.sweep() == 0 { return step }
            return .max
        }
    }

    @Test("Two thousand realms go in a dozen steps")
    func many() async throws {
        let bench = try await Rig()
        try await bench.leave(realms: 2_000, devices: 10)
        #expect(try await bench.sweep() <= 12)
        for room in ["realm", "device", "leaving"] { #expect(try await bench.rows(room).isEmpty, "\(room)") }
    }

    @Test("A realm that does not open keeps none of the others, wherever it stands", arguments: [0, 5, 299])
    func broken(_ place: Int) async throws {
        let bench = try await Rig()
        try await bench.leave(realms: 300, devices: 10)
        var row = try await bench.rows("realm")[place]
        row.body[40] ^= 1
        #expect(try await bench.engine.apply([.put(row, if: .any)], now: bench.clock.now) == .committed)
        #expect(try await bench.sweep() <= 8)
        #expect(try await bench.rows("realm").isEmpty)
        #expect(try await bench.rows("leaving").isEmpty)
        // Which devices the broken one had, nobody can tell any more.
        #expect(try await bench.rows("device").count == (place == 0 ? 10 : 0))
    }
}
