import AtRest
import Foundation
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("Nothing at rest speaks", .timeLimit(.minutes(30)))
struct AtRestTests {
    private static let canary = Array("canary-4711-in-the-coal-mine".utf8)
    private static let owner = OwnerID(Digest16(high: 3, low: 3))
    private let folder: TemporaryStore

    init() throws { folder = try TemporaryStore() }

    private func record(_ space: Space) -> Record {
        Record(
            key: RecordKey(space, Secret(Self.canary)), touchedAt: UnixTime(milliseconds: 1),
            body: Secret(Self.canary))
    }

    @Test("another key file is refused, and a rotated one opens what the old one sealed")
    func keys() async throws {
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
        let later = try await SealedStore(engine: engine, keys: rotated, world: world, upkeep: engine)
        try await SealKeyRotation(later, engine, limits: StoreRotationTests.limits).step()
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

    @Test("a push comes back from its sealed form as it was, the form of its topic included")
    func pushes() async throws {
        let app = try #require(ConfiguredName("acme"))
        let instance = try #require(ConfiguredName("main"))
        for (form, type) in [
            (APNsMessage.TopicForm.suffixedByType, APNsPushType.voip), (.asNamed, .voip), (.asNamed, .alert)
        ] {
            let message = APNsMessage(
                token: Secret("ab12".utf8), bundle: "org.acme.chat", topicForm: form, pushType: type,
                priority: 5, expiration: UnixTime(milliseconds: 7), collapseID: Secret("c".utf8),
                payload: Secret("{}".utf8))
            let clock = ManualClock()
            let world = clock.world(seed: 10)
            let engine = MemoryStore(
                owner: Self.owner, sharing: MemoryStore.Shared(rows: 10), clock: world.now)
            let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
            let lane = LaneName(app: app, service: .apns, environment: .production)
            let push = Push(
                message: .apns(message), pushClass: .normal, origin: Secret("o".utf8), record: nil,
                touchedAt: world.now(), custodyEnds: world.now() + .seconds(60), repeatIdentity: nil)
            _ = try await store.accept(
                Acceptance(
                    instance: instance, items: [Acceptance.Item(push: push, lane: lane, parked: true)],
                    changes: []))
            let owed = try await store.claim(lane, due: world.now(), limit: 1)
            let back = try #require(owed.first?.message.apns)
            #expect(back.topicForm == form && back.topic == message.topic)
            #expect(back.bundle == "org.acme.chat" && back.pushType == type && back.priority == 5)
            #expect(back.token == message.token && back.payload == message.payload)
            #expect(back.expiration == message.expiration)
            #expect(back.collapseID.map { $0 == Secret("c".utf8) } == true)
        }
    }

    @Test("rows that have expired take no place of a page, so a short page is the last")
    func pagesAreFull() async throws {
        let clock = ManualClock()
        let world = clock.world(seed: 12)
        let engine = MemoryStore(owner: Self.owner, clock: world.now)
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        let space = Space(core: "canary")
        let names = (0..<120).map { Secret([UInt8($0)]) }
        for name in names {
            let record = Record(key: RecordKey(space, name), touchedAt: world.now(), body: name)
            #expect(try await store.apply([.put(record, if: .absent)]) == .committed)
        }
        // A run of a hundred of them, such as dead tokens leave, and one row alone.
        let ended = Array(5..<105) + [110]
        for index in ended {
            let end = Change.expire(RecordKey(space, names[index]), at: world.now(), if: .any)
            #expect(try await store.apply([end]) == .committed)
        }
        let live = (0..<120).filter { !ended.contains($0) }.map { [UInt8($0)] }
        for limit in [1, 3, 19, 40] {
            var found: [[UInt8]] = []
            var after: UInt64 = 0
            while true {
                let page = try await store.page(.space(space), after: after, limit: limit)
                found += page.map { $0.body.reveal(Array.init) }
                guard page.count == limit, let last = page.last else { break }
                after = last.revision
            }
            #expect(found == live, "limit \(limit)")
        }
    }

    @Test("what is learned of an address is written without its name, and found by it all the same")
    func nameless() async throws {
        let world = ManualClock().world(seed: 11)
        let engine = MemoryStore(owner: Self.owner, clock: world.now)
        let keys = AtRestKeys.generate(world)
        let store = try await SealedStore(engine: engine, keys: keys, world: world)
        let names = [Secret(Self.canary), Secret(Self.canary + Self.canary)]
        for name in names {
            let record = Record(key: RecordKey(.learned, name), touchedAt: world.now(), body: Secret([1]))
            let change = Change.putBeside(record, registration: nil, notTouchedAfter: .distantPast)
            #expect(try await store.apply([change]) == .committed)
        }
        let rows = try await engine.page(
            .space(Space.learned.text), after: 0, limit: 9, now: world.now())
        #expect(rows.count == 2 && rows[0].body.count == rows[1].body.count, "no name, however long")
        let check = RowCheck(keys, world)
        #expect(rows.allSatisfy { check.fault(of: $0) == nil })
        let found = try await store.find(names.map { RecordKey(.learned, $0) })
        for (record, name) in zip(found, names) {
            let opened = try #require(record)
            #expect(opened.key.name == name)
        }
        let paged = try await store.page(.space(.learned), after: 0, limit: 9)
        #expect(paged.isEmpty, "who does not know a name learns none")
    }

    @Test("a store that is open is refused to a second opener")
    func lock() throws {
        let world = ManualClock().world(seed: 9)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        #expect(throws: StoreError(.inUse)) {
            _ = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        }
        try engine.close()
    }
}
