import Foundation
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("One owed push, by its id", .timeLimit(.minutes(30)))
struct LookupTests {
    private static let owner = OwnerID(Digest16(high: 6, low: 6))
    private static let start = UnixTime(seconds: 1_800_000_000)

    private func push(_ number: UInt64, at time: UnixTime) -> StoredPush {
        StoredPush(
            row: 0, id: PushID(at: time, random: number, number), lane: "acme/apns/production",
            pushClass: .urgent, origin: Digest16(high: 1, low: 1), record: nil, touchedAt: time,
            notBefore: time + .seconds(7), custodyEnds: time + .seconds(60), attempt: 3, epoch: 0,
            parked: true, mark: nil, sealed: [9, 9, 9])
    }

    @Test("It is found among many, early, late and where a clock was set back, and gone once settled")
    func sqlite() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let store = try SQLiteStore(
            path: folder.path, owner: Self.owner, world: ManualClock().world(seed: 7))
        #expect(try await store.owed(push(1, at: Self.start).id) == nil, "nothing is owed at all")
        // Twenty minutes, one push a second, and each tenth of them minted half a minute late.
        var pushes: [StoredPush] = []
        for second in 0..<1200 {
            let minted = second % 10 == 3 ? second - 30 : second
            pushes.append(push(UInt64(second), at: Self.start + .seconds(minted)))
        }
        for batch in stride(from: 0, to: pushes.count, by: 100) {
            _ = try await store.accept(Array(pushes[batch..<batch + 100]), changes: [], now: Self.start)
        }
        for index in [0, 1, 3, 33, 599, 603, 1190, 1199] {
            let found = try #require(try await store.owed(pushes[index].id), "push \(index)")
            #expect(found.id == pushes[index].id && found.lane == "acme/apns/production")
            #expect(found.attempt == 3 && found.parked && found.pushClass == .urgent)
            #expect(found.notBefore == pushes[index].notBefore)
            #expect(found.custodyEnds == pushes[index].custodyEnds && found.sealed.isEmpty)
        }
        for second in [-4000, 600, 90_000] {
            #expect(try await store.owed(push(99_999, at: Self.start + .seconds(second)).id) == nil)
        }
        let row = try #require(try await store.owed(pushes[599].id))
        let gone = StoredSettlement(
            row: row.row, id: row.id, epoch: row.epoch, mark: nil, step: .settle, first: .accepted)
        #expect(try await store.settle([gone], feedback: [], now: Self.start) == [true])
        #expect(try await store.owed(pushes[599].id) == nil)
        #expect(try await store.owed(pushes[600].id) != nil)
        try store.close()
        await #expect(throws: StoreError.self) { try await store.owed(pushes[600].id) }
    }

    @Test("The store in memory finds it too, without what is sealed")
    func memory() async throws {
        let store = MemoryStore(owner: Self.owner, clock: { Self.start })
        let one = push(1, at: Self.start)
        _ = try await store.accept([one], changes: [], now: Self.start)
        #expect(store.owed(one.id)?.lane == one.lane && store.owed(one.id)?.sealed == [])
        #expect(store.owed(push(2, at: Self.start).id) == nil)
    }
}
