import AtRest
import Foundation
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("Nothing at rest speaks", .timeLimit(.minutes(5)))
struct AtRestTests {
    private static let canary = Array("canary-4711-in-the-coal-mine".utf8)
    private static let owner = OwnerID(Digest16(high: 3, low: 3))

    private func record(_ space: Space) -> Record {
        Record(
            key: RecordKey(space, Secret(Self.canary)), touchedAt: UnixTime(milliseconds: 1),
            body: Secret(Self.canary))
    }

    @Test("another key file is refused, and a rotated one opens what the old one sealed")
    func keys() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let world = ManualClock().world(seed: 7)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let keys = AtRestKeys.generate(world)
        let space = Space(core: "canary")
        let store = try await SealedStore(engine: engine, keys: keys, world: world)
        #expect(try await store.apply([.put(record(space), if: .absent)]) == .committed)
        await #expect(throws: StoreError(.wrongKey)) {
            _ = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        }
        let rotated = try #require(keys.rotated(world))
        let later = try await SealedStore(engine: engine, keys: rotated, world: world)
        let found = try await later.find([RecordKey(space, Secret(Self.canary))])
        let body = try #require(found.first ?? nil).body
        #expect(body == Secret(Self.canary))
        await #expect(throws: StoreError(.wrongKey)) {
            _ = try await SealedStore(engine: engine, keys: keys, world: world)
        }
        try engine.close()
    }

    @Test("no file holds a name or a body, and after forgetting none holds the sealed bytes")
    func canaries() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let world = ManualClock().world(seed: 8)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        let space = Space(core: "canary")
        #expect(try await store.apply([.put(record(space), if: .any)]) == .committed)
        let row = try #require(
            try await engine.page(.space(space.text), after: 0, limit: 1, now: world.now()).first)
        let sealed = Data(row.body)
        #expect(try folder.bytes().range(of: Data(Self.canary)) == nil)
        #expect(try folder.bytes().range(of: sealed) != nil)
        let key = RecordKey(space, Secret(Self.canary))
        #expect(try await store.apply([.delete(key, if: .any)]) == .committed)
        try await engine.forgetNow()
        #expect(try folder.bytes().range(of: sealed) == nil)
        try engine.close()
    }

    @Test("a store that is open is refused to a second opener")
    func lock() throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let world = ManualClock().world(seed: 9)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        #expect(throws: StoreError(.inUse)) {
            _ = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        }
        try engine.close()
    }
}
