import Foundation
import MemoryStore
import PushModel
import PushTesting
import SQLiteStore
import Testing

@Suite("Engines keep the same rules", .timeLimit(.minutes(5)))
struct EngineConformanceTests {
    @Test("memory", arguments: EngineConformance.all)
    func memory(_ rule: ConformanceCase) async throws {
        let clock = ManualClock()
        let shared = MemoryStore.Shared(rows: EngineConformance.rowBound)
        let open: @Sendable (OwnerID) -> any Engine = {
            MemoryStore(owner: $0, sharing: shared, clock: { clock.now })
        }
        let rig = EngineRig(clock: clock, isShared: true, first: { open($0) }, next: { open($1) })
        await #expect(throws: Never.self) { try await rule.run(rig) }
    }

    @Test("SQLite", arguments: EngineConformance.all)
    func sqlite(_ rule: ConformanceCase) async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let clock = ManualClock()
        let path = folder.path
        let open: @Sendable (OwnerID) throws -> SQLiteStore = { owner in
            var limits = SQLiteLimits()
            limits.outboxRows = EngineConformance.rowBound
            return try SQLiteStore(path: path, owner: owner, limits: limits, world: clock.world(seed: 1))
        }
        let rig = EngineRig(clock: clock, isShared: false, first: { try open($0) }) { earlier, owner in
            try (earlier as? SQLiteStore)?.close()
            return try open(owner)
        }
        await #expect(throws: Never.self) { try await rule.run(rig) }
    }
}

/// A directory of its own that goes with the test.
struct TemporaryStore {
    let folder: URL
    var path: String { folder.appendingPathComponent("relay.sqlite").path }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func remove() {
        // What stays behind is only litter in a directory for litter.
        try? FileManager.default.removeItem(at: folder)
    }

    /// Everything that stands in any file of the directory.
    func bytes() throws -> Data {
        var all = Data()
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            all += try Data(contentsOf: file)
        }
        return all
    }
}
