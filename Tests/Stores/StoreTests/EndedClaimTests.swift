import AtRest
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Synchronization
import Testing

/// An engine in which something happens between a claim and its answer.
private final class InterruptedEngine: ForwardingEngine {
    struct Interruption: Sendable {
        var happen: (@Sendable () async throws(StoreError) -> Void)?
    }

    let base: any Engine
    let claimed = Mutex(Interruption())

    init(_ base: any Engine) { self.base = base }

    func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        let rows = try await base.claim(lane, due: due, limit: limit, classes: classes)
        try await claimed.withLock(\.happen)?()
        return rows
    }
}

@Suite("What is claimed of a registration that has ended goes no further", .timeLimit(.minutes(30)))
struct EndedClaimTests {
    private static let lane = LaneName("acme/fcm/production")!
    private static let instance = ConfiguredName("main")!
    private static let space = Space(core: "device")
    private static let key = RecordKey(space, Secret("phone".utf8))
    private let clock = ManualClock()

    /// How a registration ends, or becomes another's.
    enum End: CaseIterable, Sendable {
        case deleted, expired, tombstone, readdressed

        func change(at now: UnixTime) -> Change {
            switch self {
            case .deleted: .delete(EndedClaimTests.key, if: .any)
            case .expired: .expire(EndedClaimTests.key, at: now, if: .any)
            case .tombstone:
                .put(
                    Record(key: EndedClaimTests.key, state: .tombstone, touchedAt: now, body: Secret([])),
                    if: .any)
            case .readdressed: .put(EndedClaimTests.registration(at: "another", now), if: .any)
            }
        }
    }

    private static func registration(at address: String, _ now: UnixTime) -> Record {
        Record(
            key: key, address: RecordKey(Space(core: "address"), Secret(address.utf8)), touchedAt: now,
            body: Secret(address.utf8))
    }

    /// A phone, a push that is owed to it, and one that is owed to nobody in particular.
    private static func owe(_ store: SealedStore, _ now: UnixTime, parked: Bool) async throws {
        _ = try await store.apply([.put(registration(at: "one", now), if: .absent)])
        let record = try #require(try await store.find([key])[0])
        let items = ["phone", "other"].map { name in
            let message = FCMMessage(
                address: Secret(name.utf8), priority: .high, data: Secret("{}".utf8))
            var push = Push(
                message: .fcm(message), pushClass: .normal, origin: Secret("one".utf8),
                record: name == "phone" ? key : nil, touchedAt: now, custodyEnds: now + .seconds(3_600),
                repeatIdentity: nil)
            if name == "phone" { push.registeredAddress = record.addressDigest }
            return Acceptance.Item(push: push, lane: lane, parked: parked)
        }
        _ = try await store.accept(Acceptance(instance: instance, items: items, changes: []))
        #expect(try await store.load().rows == 2)
    }

    private static func addresses(_ pushes: [OwedPush]) -> [String] {
        pushes.map { $0.message.address.reveal { String(decoding: $0, as: UTF8.self) } }
    }

    @Test("Claimed while it ended", arguments: End.allCases)
    func meanwhile(_ end: End) async throws {
        let world = clock.world(seed: 6)
        let keys = AtRestKeys.generate(world)
        let engine = InterruptedEngine(
            MemoryStore(owner: OwnerID(Digest16(high: 3, low: 3)), clock: world.now))
        let store = try await SealedStore(engine: engine, keys: keys, world: world)
        try await store.renew(for: .seconds(3_600))
        try await Self.owe(store, clock.now, parked: true)
        // What another process changes on the same store.
        let beside = try await SealedStore(engine: engine.base, keys: keys, world: world)
        let change = end.change(at: clock.now)
        engine.claimed.withLock {
            $0.happen = { () async throws(StoreError) in _ = try await beside.apply([change]) }
        }
        let claimed = try await store.claim(Self.lane, due: clock.now, limit: 10)
        #expect(Self.addresses(claimed) == ["other"])
        #expect(try await store.load().rows == 1)
    }

    @Test("Left by a process that is gone, and claimed after it ended", arguments: End.allCases)
    func afterwards(_ end: End) async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let world = clock.world(seed: 7)
        let keys = AtRestKeys.generate(world)
        // In its memory, where nobody else looks before they are taken over.
        let dead = try SQLiteStore(
            path: folder.path, owner: OwnerID(Digest16(high: 1, low: 1)), world: world)
        try await Self.owe(
            try await SealedStore(engine: dead, keys: keys, world: world), clock.now, parked: false)
        try dead.close()
        let engine = try SQLiteStore(
            path: folder.path, owner: OwnerID(Digest16(high: 2, low: 2)), world: world)
        let store = try await SealedStore(engine: engine, keys: keys, world: world)
        _ = try await store.apply([end.change(at: clock.now)])
        #expect(try await store.takeOver([Self.lane], limit: 10) == 2)
        let claimed = try await store.claim(Self.lane, due: clock.now, limit: 10)
        #expect(Self.addresses(claimed) == ["other"])
        #expect(try await store.load().rows == 1, "and nobody owes it any more")
        try engine.close()
    }
}
