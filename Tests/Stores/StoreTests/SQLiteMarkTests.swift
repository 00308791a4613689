import GRDB
import PushModel
import PushTesting
import Testing

@testable import SQLiteStore

@Suite("Marks in a SQLite file", .timeLimit(.minutes(30)))
struct SQLiteMarkTests {
    private static let owner = OwnerID(Digest16(high: 4, low: 4))

    @Test("Batches of marks go oldest first and a few at a time once they count no more, and no others do")
    func purge() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let clock = ManualClock()
        var limits = SQLiteLimits()
        limits.blobsPerPurge = 4
        let engine = try SQLiteStore(
            path: folder.path, owner: Self.owner, limits: limits, world: clock.world(seed: 2))
        var number: UInt64 = 0
        func settleOne() async throws {
            number += 1
            var push = PostgresSamples.push(number, clock)
            push.mark = PostgresSamples.digest(number)
            guard
                case .committed(let admitted) = try await engine.accept([push], changes: [], now: clock.now),
                case .owed(let row, let epoch) = admitted[0]
            else { throw StoreError(.unavailable) }
            let step = StoredSettlement(
                row: row, id: push.id, epoch: epoch, mark: push.mark, step: .settle, first: .accepted)
            #expect(try await engine.settle([step], feedback: [], now: clock.now) == [true])
        }
        func blobs() async throws -> [Int64] {
            try await engine.pool.read { try Int64.fetchAll($0, sql: "SELECT seq FROM marks ORDER BY seq") }
        }
        for _ in 0..<10 { try await settleOne() }
        #expect(try await blobs() == Array(1...10), "they hold")
        clock.advance(by: limits.markSpan * 2 + .seconds(1))
        try await settleOne()
        #expect(try await blobs() == Array(5...11), "four go with the next settlement")
        try await settleOne()
        #expect(try await blobs() == Array(5...12), "and no more within a second")
        clock.advance(by: limits.purgeEvery)
        try await settleOne()
        clock.advance(by: limits.purgeEvery)
        try await settleOne()
        #expect(try await blobs() == Array(11...14))
        clock.skewWall(by: .seconds(-3_600))
        try await settleOne()
        #expect(try await blobs() == Array(11...15), "a clock that is set back takes none")
        // Made by a clock that was years ahead, a batch stays and holds up none behind it.
        clock.skewWall(by: .seconds(3_600 + 300_000_000))
        try await settleOne()
        clock.skewWall(by: .seconds(-300_000_000))
        for _ in 0..<10 {
            clock.advance(by: limits.markSpan * 2 + .seconds(1))
            try await settleOne()
        }
        let left = try await blobs()
        #expect(left.contains(16) && !left.contains(20), "\(left)")
        try engine.close()
    }
}
