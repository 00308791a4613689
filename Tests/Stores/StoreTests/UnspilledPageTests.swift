import Foundation
import GRDB
import PushModel
import PushTesting
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(30)))
struct UnspilledPageTests {
    private static func bytes(of path: String) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
    }

    /// SQLite 3.40 may lose what is committed after a savepoint was undone, in a crash, when pages of the
    /// transaction had gone to the log before (decision 0134; ``HeldFramesTests`` meets it with savepoints and
    /// SQLite's own setting).
    @Test("Nothing of a commit is in the log before it, however much it changes")
    func unspilled() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.file("store.sqlite")
        var limits = SQLiteLimits()
        // Far less than one commit changes, and that is more than what is held of a commit.
        limits.writerCacheKiB = 64
        let store = try SQLiteStore(
            path: path, owner: OwnerID(Digest16(high: 1, low: 1)), limits: limits, world: .live)
        try await store.queue.submit { _, db in
            try db.execute(sql: "CREATE TABLE scratch (id INTEGER PRIMARY KEY, body BLOB)")
        }
        let sizes = try await store.queue.submit { _, db in
            let before = try Self.bytes(of: path + "-wal")
            for id in 0..<200 {
                try db.execute(
                    sql: "INSERT INTO scratch VALUES (?, ?)",
                    arguments: [id, Data(repeating: 1, count: 3_000)])
            }
            return [before, try Self.bytes(of: path + "-wal")]
        }
        #expect(sizes[0] == sizes[1])
        #expect(try Self.bytes(of: path + "-wal") >= sizes[1] + 200 * 4_096)
    }
}
