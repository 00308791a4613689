import AtRest
import Foundation
import GRDB
import MemoryStore
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import SQLiteStore

/// An engine whose writes about broken rows fail while a switch is on.
private final class FaultyEngine: ForwardingEngine {
    let base: any Engine
    let isOut = Mutex(false)

    init(_ base: any Engine) { self.base = base }

    private func check() throws(StoreError) { if isOut.withLock(\.self) { throw StoreError(.unavailable) } }

    func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try check()
        return try await base.setAside(pushes)
    }

    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        try check()
        return try await base.settle(steps, feedback: feedback, now: now)
    }
}

@Suite("A broken row takes no other with it", .timeLimit(.minutes(30)))
struct BrokenRowTests {
    private static let owner = OwnerID(Digest16(high: 3, low: 3))
    private static let lane = LaneName("acme/fcm/production")!
    private static let instance = ConfiguredName("main")!
    private static let space = Space(core: "broken")
    private let folder: TemporaryStore
    private let clock = ManualClock()

    init() throws { folder = try TemporaryStore() }

    private static func accept(_ numbers: Range<Int>, _ store: SealedStore, _ clock: ManualClock) async throws
    {
        let items = numbers.map { number in
            let message = FCMMessage(
                address: Secret("t\(number)".utf8), priority: .high, data: Secret("{}".utf8))
            let push = Push(
                message: .fcm(message), pushClass: .normal, origin: Secret("o\(number)".utf8), record: nil,
                touchedAt: clock.now, custodyEnds: clock.now + .seconds(3_600),
                repeatIdentity: Secret("t\(number)".utf8))
            return Acceptance.Item(push: push, lane: lane, parked: true)
        }
        let accepted = try await store.accept(Acceptance(instance: instance, items: items, changes: []))
        guard case .committed(let admissions) = accepted else { throw StoreError(.corrupt) }
        #expect(
            admissions.allSatisfy { if case .owed = $0 { true } else { false } }, "a new push, not a repeat")
    }

    private static func addresses(_ pushes: [OwedPush]) -> [String] {
        pushes.map { $0.message.address.reveal { String(decoding: $0, as: UTF8.self) } }.sorted()
    }

    /// Changes a byte of the sealed column of one push.
    private static func spoil(
        byte: Int, of place: Int, _ upkeep: any StoreUpkeep
    ) async throws {
        let row = try await upkeep.pushes(after: [], limit: 100).rows[place].push
        var sealed = row.sealed
        sealed[byte] ^= 0x40
        #expect(try await upkeep.reseal([.push(row: row.row, id: row.id, sealed: sealed)]) == 1)
    }

    @Test("pushes beside one that does not open are given out, though the store fails behind the claim")
    func stranded() async throws {
        let world = clock.world(seed: 3)
        let memory = MemoryStore(owner: Self.owner, clock: world.now)
        let engine = FaultyEngine(memory)
        let spy = LogSpy()
        let store = try await SealedStore(
            engine: engine, keys: AtRestKeys.generate(world), world: world, journal: spy.journal)
        try await store.renew(for: .seconds(3_600))
        try await Self.accept(0..<4, store, clock)
        try await Self.spoil(byte: 40, of: 1, memory)
        // The first byte tells the key: this one seems to be sealed with a key that nobody holds.
        try await Self.spoil(byte: 0, of: 2, memory)
        engine.isOut.withLock { $0 = true }
        let good = try await store.claim(Self.lane, due: clock.now, limit: 10)
        #expect(Self.addresses(good) == ["t0", "t3"])
        #expect(spy.contains("set aside") && spy.contains("wrongKey"))
        engine.isOut.withLock { $0 = false }
        try await store.renew(for: .seconds(3_600))
        let load = try await store.load()
        #expect(load.rows == 4 && load.aside == 1 && load.lanes == [Self.lane: 1])
        #expect(try await store.takeOver([Self.lane], limit: 10) == 0)
        #expect(try await store.letGo(besides: [Self.lane], limit: 10) == 0)
        // Nobody gets either again and again: of ten hours the second comes a handful of times.
        var comes = 0
        for _ in 0..<50 {
            clock.advance(by: .seconds(61))
            let waiting = try await store.nextDue(Self.lane).map { $0 <= clock.now } ?? false
            if waiting { comes += 1 }
            #expect(try await store.claim(Self.lane, due: clock.now, limit: 10).isEmpty)
        }
        #expect((1...8).contains(comes))
        // Anyone who repeats what nobody sends has it sent.
        try await Self.accept(1..<2, store, clock)
        clock.advance(by: .seconds(700))
        let ended = try await store.endCustody(before: clock.now, limit: 10)
        #expect(ended == [Self.lane: 2], "the broken ones, counted with their lane")
    }

    private static let caller = Array("a caller's name".utf8)

    private static func record(_ space: Space) -> PushModel.Record {
        PushModel.Record(
            key: RecordKey(space, Secret(caller)), touchedAt: UnixTime(milliseconds: 1), body: Secret(caller))
    }

    @Test("A row that was changed under the relay is broken, whoever's it is")
    func changedBelow() async throws {
        let world = ManualClock().world(seed: 9)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        for room in ["main/server", "main/realm", "main/device"] {
            let space = Space(text: room)
            let key = RecordKey(space, Secret(Self.caller))
            #expect(try await store.apply([.put(Self.record(space), if: .any)]) == .committed)
            for _ in 0..<2 {
                let found = try #require(try await store.find([key]).first ?? nil)
                #expect(found.body == Secret(Self.caller) && found.digest != nil)
            }
            // A later put is seen at once.
            var next = Self.record(space)
            next.body = Secret("another body".utf8)
            #expect(try await store.apply([.put(next, if: .any)]) == .committed)
            #expect(try #require(try await store.find([key]).first ?? nil).body == next.body)
        }
        try await engine.maintain { _, db in
            try db.execute(sql: "UPDATE records SET touched_at = touched_at + 1")
        }
        for room in ["main/server", "main/realm", "main/device"] {
            let key = RecordKey(Space(text: room), Secret(Self.caller))
            #expect((try await store.find([key]).first ?? nil) == nil, "\(room)")
        }
        try engine.close()
    }

    @Test("columns that cannot be what was written put one row aside, in a file that opens all the same")
    func columns() async throws {
        let world = clock.world(seed: 4)
        let keys = AtRestKeys.generate(world)
        var engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        var store = try await SealedStore(engine: engine, keys: keys, world: world)
        try await Self.accept(0..<5, store, clock)
        try await engine.maintain { _, db in
            try db.execute(sql: "UPDATE outbox SET origin = x'0102' WHERE seq = 2")
            try db.execute(sql: "UPDATE outbox SET mark = x'01' WHERE seq = 4")
        }
        try engine.close()
        engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        store = try await SealedStore(engine: engine, keys: keys, world: world)
        let good = try await store.claim(Self.lane, due: clock.now, limit: 10)
        #expect(Self.addresses(good) == ["t0", "t2", "t4"])
        #expect(try await store.load().aside == 2)
        clock.advance(by: .seconds(3_601))
        #expect(try await store.endCustody(before: clock.now, limit: 10) == [Self.lane: 2])
        try engine.close()
    }

    @Test("a record that does not open is none, whichever of its bytes was changed; the others are found")
    func records() async throws {
        let world = clock.world(seed: 5)
        let engine = MemoryStore(owner: Self.owner, clock: world.now)
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        let keys = ["a", "b", "c"].map { RecordKey(Self.space, Secret($0.utf8)) }
        for key in keys {
            let record = Record(key: key, touchedAt: clock.now, body: Secret("body".utf8))
            _ = try await store.apply([.put(record, if: .absent)])
        }
        for byte in [0, 3, 20, 50] {
            let row = try await engine.page(.space(Self.space.text), after: 0, limit: 10, now: clock.now)[1]
            var body = row.body
            body[byte] ^= 0x40
            _ = try await engine.reseal([.record(row.key, revision: row.revision, body: body)])
            let found = try await store.find(keys)
            #expect(found.map { $0 == nil } == [false, true, false], "byte \(byte)")
            #expect(try await store.page(.space(Self.space), after: 0, limit: 10).count == 2)
            body[byte] ^= 0x40
            _ = try await engine.reseal([.record(row.key, revision: row.revision, body: body)])
        }
        let mended = try await store.find(keys)
        #expect(mended.count { $0 != nil } == 3)
    }
}
