import AtRest
import Foundation
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("A newer key comes into use while the store is in use", .timeLimit(.minutes(30)))
struct StoreRotationTests {
    private static let owner = OwnerID(Digest16(high: 4, low: 4))
    private static let space = Space(core: "rotation")
    private static let instance = ConfiguredName("main")!
    private let folder: TemporaryStore
    private let clock = ManualClock()

    init() throws { folder = try TemporaryStore() }

    private static let lane = LaneName(
        app: ConfiguredName("acme")!, service: .apns, environment: .production)

    /// Without pauses: on a clock that stands still they would not end.
    static var limits: SealKeyRotation.Limits {
        var limits = SealKeyRotation.Limits()
        limits.page = 16
        limits.pause = .zero
        limits.settling = .zero
        return limits
    }

    private static func key(_ number: Int) -> RecordKey { RecordKey(space, Secret("name \(number)".utf8)) }

    private static func record(_ number: Int, _ body: String) -> Record {
        Record(key: key(number), touchedAt: UnixTime(milliseconds: 1), body: Secret(body.utf8))
    }

    private static func push(_ number: Int, _ world: World) -> Acceptance.Item {
        let message = APNsMessage(
            token: Secret("ab12".utf8), bundle: "org.acme.chat", topicForm: .suffixedByType, pushType: .alert,
            priority: 5, expiration: nil, collapseID: nil, payload: Secret("{\"n\":\(number)}".utf8))
        let push = Push(
            message: .apns(message), pushClass: .normal, origin: Secret("o".utf8), record: nil,
            touchedAt: world.now(), custodyEnds: world.now() + .seconds(3600), repeatIdentity: nil)
        return Acceptance.Item(push: push, lane: lane, parked: true)
    }

    /// Puts records 0 to `records`, and as many pushes as are asked for.
    private static func fill(
        _ store: SealedStore, records: Int, pushes: Int, _ world: World
    ) async throws {
        _ = try await store.apply((0..<records).map { .put(record($0, "old \($0)"), if: .absent) })
        _ = try await store.accept(
            Acceptance(instance: instance, items: (0..<pushes).map { push($0, world) }, changes: []))
    }

    /// Key numbers of everything that stands.
    private static func numbers(_ rows: any StoredRows) async throws -> [UInt8] {
        var numbers = try await rows.records(after: [], limit: 10_000).rows.map { $0.body[3] }
        numbers += try await rows.pushes(after: [], limit: 10_000).rows.map { $0.push.sealed[3] }
        return numbers
    }

    /// Steps until nothing is left to do.
    private static func finish(_ rotation: SealKeyRotation) async throws {
        for _ in 0..<10 where rotation.progress.phase != .done { try await rotation.step() }
        #expect(rotation.progress.phase == .done)
    }

    @Test("under writes: no write is lost, everything is sealed anew, and the old key may go")
    func underWrites() async throws {
        let world = World.live
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let keys = AtRestKeys.generate(world)
        let store = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
        try await Self.fill(store, records: 90, pushes: 60, world)
        #expect(Set(try await Self.numbers(engine)) == [1])
        let rotation = SealKeyRotation(store, engine, limits: Self.limits)
        let rotated = try #require(keys.rotated(world))
        try await rotation.adopt(rotated)
        #expect(try await rotation.release() == nil, "nothing may go before it is done")
        let written = try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask {
                try await Self.finish(rotation)
                return 0
            }
            group.addTask {
                var written = 0
                // Each under the revision that it has read, as roles write.
                for round in 0..<4 {
                    for number in 0..<90 where number % 3 == round % 3 {
                        let found = try await store.find([Self.key(number)])
                        let standing = try #require(found.first ?? nil)
                        let new = Self.record(number, "new \(round) \(number)")
                        let applied = try await store.apply([.put(new, if: .revision(standing.revision))])
                        #expect(applied == .committed, "sealing anew is no change that a writer sees")
                        written += 1
                    }
                }
                return written
            }
            return try await group.reduce(0, +)
        }
        #expect(written == 120)
        // Whatever was under way when the key changed is found by the next look.
        try await engine.put(setting: "rotation/2", to: nil)
        try await rotation.step()
        try await Self.finish(rotation)
        #expect(Set(try await Self.numbers(engine)) == [2])
        for number in 0..<90 {
            let last = number % 3 == 0 ? "new 3 \(number)" : "new \(number % 3) \(number)"
            let body = try await store.find([Self.key(number)]).first.flatMap { $0 }?.body
            #expect(body.map { $0 == Secret(last.utf8) } == true)
        }
        #expect(try await rotation.release() == [1])
        try await rotation.adopt(try #require(rotated.without([1])))
        // The new key alone opens all of it, the old one nothing.
        let later = try await SealedStore(
            engine: engine, keys: try #require(rotated.without([1])), world: world, upkeep: engine)
        #expect(try await later.claim(Self.lane, due: world.now(), limit: 100).count == 60)
        await #expect(throws: StoreError(.wrongKey)) {
            _ = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
        }
        try engine.close()
    }

    @Test("a crash in the middle: the next start goes on, and does nothing twice")
    func crash() async throws {
        let world = World.live
        let keys = AtRestKeys.generate(world)
        let rotated = try #require(keys.rotated(world))
        let first = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let store = try await SealedStore(engine: first, keys: keys, world: world, upkeep: first)
        try await Self.fill(store, records: 100, pushes: 20, world)
        let failing = CutUpkeep(first, commits: 3, of: [.reseal])
        let broken = SealKeyRotation(store, failing, limits: Self.limits)
        try await broken.adopt(rotated)
        await #expect(throws: StoreError(.unavailable)) { try await broken.step() }
        #expect(broken.progress.renewed == 48)
        try first.close()

        let second = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let again = try await SealedStore(engine: second, keys: rotated, world: world, upkeep: second)
        let counts = try await Self.numbers(second)
        #expect(counts.count { $0 == 2 } == 48 && counts.count { $0 == 1 } == 72)
        let rotation = SealKeyRotation(again, second, limits: Self.limits)
        try await Self.finish(rotation)
        #expect(rotation.progress.renewed == 72 && rotation.progress.unopened == 0)
        #expect(Set(try await Self.numbers(second)) == [2])
        try second.close()
    }

    @Test("a file that does not fit is refused, and changes nothing")
    func wrongFile() async throws {
        let world = ManualClock().world(seed: 3)
        let engine = MemoryStore(owner: Self.owner, clock: world.now)
        let keys = AtRestKeys.generate(world)
        let store = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
        try await Self.fill(store, records: 3, pushes: 1, world)
        let rotation = SealKeyRotation(store, engine, limits: Self.limits)
        let strange = AtRestKeys.generate(world)
        let mixed = try #require(AtRestKeys(lookup: keys.lookup, seal: strange.seal))
        let rotated = try #require(keys.rotated(world))
        for wrong in [strange, mixed, try #require(rotated.without([1]))] {
            await #expect(throws: StoreError(.wrongKey)) { try await rotation.adopt(wrong) }
            #expect(rotation.progress.held == [1] && rotation.progress.sealing == 1)
        }
        try await rotation.adopt(rotated)
        try await Self.finish(rotation)
        // Neither the file of before nor one without the key in use.
        await #expect(throws: StoreError(.wrongKey)) { try await rotation.adopt(keys) }
        #expect(rotation.progress.sealing == 2)
    }

    @Test("two relays: none seals with a key before both hold it, and one alone seals anew")
    func twoRelays() async throws {
        let world = clock.world(seed: 4)
        let shared = MemoryStore.Shared()
        let keys = AtRestKeys.generate(world)
        let rotated = try #require(keys.rotated(world))
        func relay(_ id: UInt64, _ keys: AtRestKeys) async throws -> (SealedStore, SealKeyRotation) {
            let engine = MemoryStore(
                owner: OwnerID(Digest16(high: id, low: 0)), sharing: shared, clock: world.now)
            let store = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
            return (store, SealKeyRotation(store, engine, limits: Self.limits))
        }
        let (a, first) = try await relay(1, keys)
        let (b, second) = try await relay(2, keys)
        let (_, third) = try await relay(3, keys)
        try await Self.fill(a, records: 40, pushes: 5, world)
        try await first.adopt(rotated)
        try await first.step()
        #expect(first.progress.phase == .waiting && first.progress.missing == 2)
        #expect(first.progress.sealing == 1)
        try await second.adopt(rotated)
        // The third dies without a word: who is dead is not waited for.
        _ = third
        clock.advance(by: .seconds(21))
        try await a.renew(for: .seconds(3600))
        try await b.renew(for: .seconds(3600))
        try await first.step()
        #expect(first.progress.sealing == 2 && first.progress.phase == .waiting)
        #expect(first.progress.missing == 1, "the second relay holds the key and does not use it yet")
        await #expect(throws: StoreError(.wrongKey), "a file of before, at a start of now") {
            _ = try await relay(5, keys)
        }
        clock.advance(by: .seconds(21))
        try await second.step()
        #expect(second.progress.sealing == 2 && second.progress.phase == .elsewhere)
        try await Self.finish(first)
        try await second.step()
        #expect(first.progress.renewed == 45 && second.progress.renewed == 0)
        #expect(second.progress.phase == .done)
        #expect(try await second.release() == [1])
        _ = b
    }

    @Test("two files with two keys of one number: neither is used")
    func twoFiles() async throws {
        let world = clock.world(seed: 5)
        let shared = MemoryStore.Shared()
        let keys = AtRestKeys.generate(world)
        var rotations: [SealKeyRotation] = []
        for id in 1...2 as ClosedRange<UInt64> {
            let engine = MemoryStore(
                owner: OwnerID(Digest16(high: id, low: 0)), sharing: shared, clock: world.now)
            let store = try await SealedStore(engine: engine, keys: keys, world: world, upkeep: engine)
            rotations.append(SealKeyRotation(store, engine, limits: Self.limits))
            try await rotations.last?.adopt(try #require(keys.rotated(world)))
        }
        for rotation in rotations {
            try await rotation.step()
            #expect(rotation.progress.phase == .waiting && rotation.progress.sealing == 1)
        }
    }

    @Test("an owed push under a key that the file does not have waits, and is sent once the key is there")
    func unknownKey() async throws {
        let world = clock.world(seed: 6)
        let shared = MemoryStore.Shared()
        let keys = AtRestKeys.generate(world)
        let rotated = try #require(keys.rotated(world))
        let engine = MemoryStore(owner: Self.owner, sharing: shared, clock: world.now)
        let spy = LogSpy()
        let store = try await SealedStore(
            engine: engine, keys: keys, world: world, journal: spy.journal, upkeep: engine)
        let rotation = SealKeyRotation(store, engine, limits: Self.limits)
        // A row that another relay sealed with a key of which this one has never heard.
        let other = MemoryStore(owner: Self.owner, clock: world.now)
        let sealed = try await SealedStore(engine: other, keys: rotated, world: world)
        try await Self.fill(sealed, records: 0, pushes: 1, world)
        let row = try await other.pushes(after: [], limit: 1).rows
        try await engine.fill(.pushes(row), noting: "test", [])
        #expect(try await store.claim(Self.lane, due: world.now(), limit: 10).isEmpty)
        #expect(try await engine.load().rows == 1, "it is not destroyed")
        #expect(spy.contains("wrongKey"))
        try await rotation.adopt(rotated)
        #expect(try await store.claim(Self.lane, due: world.now(), limit: 10).isEmpty, "not at once")
        clock.advance(by: .seconds(61))
        #expect(try await store.claim(Self.lane, due: world.now(), limit: 10).count == 1)
    }
}

@Suite("A key file is changed in one step", .timeLimit(.minutes(30)))
struct KeyFileChangeTests {
    @Test("mode and link stay, nobody sees half of it, and one who changes it is alone")
    func change() throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let path = folder.folder.path + "/storage.keys"
        let link = folder.folder.path + "/link.keys"
        let world = World.live
        let keys = try KeyFile.create(path, world)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        // One who was killed left this.
        try Data("half".utf8).write(to: URL(filePath: path + ".new"))
        let changed = try KeyFile.change(link) { standing throws(KeyFileError) in
            #expect(standing.seal.count == 1)
            #expect(throws: KeyFileError(.busy)) {
                _ = try KeyFile.change(path) { keys throws(KeyFileError) in keys }
            }
            guard let rotated = standing.rotated(world) else { throw KeyFileError(.malformed) }
            return rotated
        }
        #expect(changed.seal.map(\.number) == [2, 1])
        let read = try KeyFile.read(path)
        #expect(read.seal.map(\.number) == [2, 1] && read.lookup == keys.lookup)
        #expect(read.seal[1].key == keys.seal[0].key)
        let facts = try FileManager.default.attributesOfItem(atPath: path)
        #expect(facts[.posixPermissions] as? Int == 0o640)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
        #expect(throws: KeyFileError(.malformed)) {
            _ = try KeyFile.change(path) { _ throws(KeyFileError) in throw KeyFileError(.malformed) }
        }
        #expect(try KeyFile.read(path).seal.count == 2)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.folder.path)
        #expect(Set(names) == ["storage.keys", "link.keys"])
    }
}
