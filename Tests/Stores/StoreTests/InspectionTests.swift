import AtRest
import Foundation
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("A look into a store from outside", .timeLimit(.minutes(30)))
struct InspectionTests {
    private static let owner = OwnerID(Digest16(high: 5, low: 5))
    private let folder: TemporaryStore

    init() throws { folder = try TemporaryStore() }

    private func push(_ number: UInt64, at time: UnixTime) -> StoredPush {
        StoredPush(
            row: 0, id: PushID(at: time, random: number, number), lane: "acme/fcm/production",
            pushClass: .normal, origin: Digest16(high: 1, low: 1), record: nil, touchedAt: time,
            notBefore: time, custodyEnds: .distantFuture, attempt: 0, epoch: 0, parked: true, mark: nil,
            sealed: [UInt8](repeating: 7, count: 10))
    }

    @Test("It sees what an owner has just committed, and counts rows, bytes, lanes and the oldest")
    func sees() async throws {
        let world = ManualClock().world(seed: 7)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let keys = AtRestKeys.generate(world)
        func look() throws -> SQLiteInspection {
            try SQLiteInspection.look(at: folder.path, within: .seconds(60), World.live.instant)
        }
        #expect(KeyFit.of(keys, try look().checks, world) == .unused)
        _ = try await SealedStore(engine: engine, keys: keys, world: world)
        let first = UnixTime(seconds: 1_800_000_000)
        _ = try await engine.accept(
            [push(1, at: first), push(2, at: first + .seconds(9))], changes: [], now: first)
        let seen = try look()
        #expect(seen.soundness == .sound)
        #expect(seen.owed?.rows == 2 && seen.owed?.bytes == 20 && seen.owed?.oldest?.acceptedAt == first)
        #expect(seen.owed?.lanes == ["acme/fcm/production": 2])
        #expect(KeyFit.of(keys, seen.checks, world) == .fits)
        #expect(KeyFit.of(AtRestKeys.generate(world), seen.checks, world) == .foreign)
        let rotated = try #require(keys.rotated(world))
        #expect(KeyFit.of(rotated, seen.checks, world) == .fits)
        let sealed = try await SealedStore(engine: engine, keys: rotated, world: world, upkeep: engine)
        #expect(KeyFit.of(keys, try look().checks, world) == .fits, "the new key is not in use yet")
        try await SealKeyRotation(sealed, engine, limits: StoreRotationTests.limits).step()
        #expect(KeyFit.of(keys, try look().checks, world) == .foreign, "an older copy lacks a key")
        try engine.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.folder.path)
        #expect(try look().owed == seen.owed)
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: folder.folder.path)) == Set(names))
    }

    @Test("Counting and checking end with the span that they are given")
    func bounded() async throws {
        let world = ManualClock().world(seed: 7)
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: world)
        let first = UnixTime(seconds: 1_800_000_000)
        let pushes = (0..<20_000).map { push(UInt64($0), at: first) }
        _ = try await engine.accept(pushes, changes: [], now: first)
        let whole = try SQLiteInspection.look(at: folder.path, within: .seconds(600), World.live.instant)
        #expect(whole.owed?.rows == 20_000 && whole.soundness == .sound)
        let cut = try SQLiteInspection.look(at: folder.path, within: .zero, World.live.instant)
        #expect(cut.owed == nil && cut.soundness == .unfinished)
        try engine.close()
    }

    @Test("A file that is not there, and one that is no database, are told apart")
    func absent() throws {
        func look(_ path: String) throws -> SQLiteInspection {
            try SQLiteInspection.look(at: path, within: .seconds(60), World.live.instant)
        }
        #expect(throws: StoreError(.unavailable)) { try look(folder.path) }
        let text = Data(String(repeating: "no database ", count: 100).utf8)
        try text.write(to: URL(filePath: folder.path))
        #expect(throws: StoreError(.corrupt)) { try look(folder.path) }
        // Characters that mean something in a URI are part of the name.
        let odd = folder.folder.path + "/odd ?mode=rwc&#%41.sqlite"
        #expect(throws: StoreError(.unavailable)) { try look(odd) }
        #expect(!FileManager.default.fileExists(atPath: odd))
    }
}
