import Foundation
import GRDB
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import SQLiteStore

/// Pieces of rows that have gone, found in whatever file they may still be in.
struct Remains {
    private static let pieceBytes = 24
    /// By the first eight bytes of a piece.
    private var pieces: [UInt64: [UInt8]] = [:]
    /// Three bytes of each, so that most places need no look-up.
    private var filter = [Bool](repeating: false, count: 1 << 24)

    mutating func add(_ row: [UInt8]) {
        for start in stride(from: 0, through: row.count - Self.pieceBytes, by: Self.pieceBytes) {
            let piece = Array(row[start..<start + Self.pieceBytes])
            let word = piece.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
            pieces[word] = piece
            filter[Int(word & 0xFF_FFFF)] = true
        }
    }

    func count(in data: Data) -> Int {
        data.withUnsafeBytes { bytes in
            filter.withUnsafeBufferPointer { filter in
                var found = 0
                for at in 0..<max(0, bytes.count - Self.pieceBytes) {
                    let word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                    guard filter[Int(word & 0xFF_FFFF)], let piece = pieces[word] else { continue }
                    if bytes[at..<at + Self.pieceBytes].elementsEqual(piece) { found += 1 }
                }
                return found
            }
        }
    }
}

/// What the tasks of one test share.
private final class Yard: Sendable {
    let gone = Mutex(Remains())
    let isDone = Mutex(false)

    func bury(_ bodies: [[UInt8]]) { gone.withLock { gone in for body in bodies { gone.add(body) } } }
}

@Suite("What went is in no file", .timeLimit(.minutes(30)))
struct StoreForgettingTests {
    private static let owner = OwnerID(Digest16(high: 3, low: 3))
    private static let lanes = ["acme/apns/production", "acme/fcm/production"]
    private let folder: TemporaryStore
    private let clock = ManualClock()

    init() throws { folder = try TemporaryStore() }

    /// As sealed bytes are: random. One in twenty is longer than a page.
    private static func body(_ random: inout SeededRandom) -> [UInt8] {
        let isLong = Int.random(in: 0..<20, using: &random) == 0
        let words =
            isLong ? Int.random(in: 500..<2_500, using: &random) : .random(in: 15..<125, using: &random)
        return (0..<words).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
    }

    private static func digest(_ random: inout SeededRandom) -> Digest16 {
        Digest16(high: random.next(), low: random.next())
    }

    /// One caller's pushes: accepted, retried, parked, claimed, settled, withdrawn, ended; what is owed at the
    /// end comes back as it was sealed.
    private static func pushes(
        _ engine: SQLiteStore, _ seed: UInt64, _ now: UnixTime, _ yard: Yard
    ) async throws -> [[UInt8]] {
        var random = SeededRandom(seed: seed)
        var kept: [[UInt8]] = []
        let origin = digest(&random)
        for _ in 0..<50 {
            let call = (0..<50).map { index in
                StoredPush(
                    row: 0, id: PushID(digest(&random)), lane: lanes[index % 2], pushClass: .normal,
                    origin: origin,
                    record: nil, touchedAt: now, notBefore: now,
                    custodyEnds: now + .seconds(index % 10 == 9 ? 1 : 86_400), attempt: 0, epoch: 0,
                    parked: index % 10 == 9, mark: digest(&random), sealed: body(&random))
            }
            guard case .committed(let admissions) = try await engine.accept(call, changes: [], now: now)
            else {
                Issue.record("refused")
                return []
            }
            var steps: [StoredSettlement] = []
            for (push, admission) in zip(call, admissions) where !push.parked {
                guard case .owed(let row, let epoch) = admission else { continue }
                let step: Settlement.Step
                switch Int.random(in: 0..<10, using: &random) {
                case 0:
                    kept.append(push.sealed)
                    step = .retry(notBefore: now, attempt: 1, lane: LaneName(lanes[1])!, parked: true)
                case 1: step = .withdraw
                default: step = .settle
                }
                steps.append(
                    StoredSettlement(
                        row: row, id: push.id, epoch: epoch, mark: push.mark, step: step, first: nil))
            }
            steps.shuffle(using: &random)
            let done = try await engine.settle(steps, feedback: [], now: now)
            #expect(done.allSatisfy { $0 })
            let alive = Set(kept.suffix(50))
            yard.bury(call.map(\.sealed).filter { !alive.contains($0) })
        }
        return kept
    }

    /// Records that are put, replaced, expired, deleted, purged and forgotten; the bodies that stand at the
    /// end come back.
    private static func records(
        _ engine: SQLiteStore, _ seed: UInt64, _ now: UnixTime, _ yard: Yard
    ) async throws -> [[UInt8]] {
        var random = SeededRandom(seed: seed)
        let owners = [digest(&random), digest(&random)]
        var standing: [Digest16: [UInt8]] = [:]
        for _ in 0..<60 {
            var changes: [StoredChange] = []
            var dead: [[UInt8]] = []
            for index in 0..<40 {
                let key = digest(&random)
                let fate = index % 8
                let record = StoredRecord(
                    key: key, space: "main/device", owner: fate == 7 ? owners[1] : owners[0],
                    address: digest(&random), version: 0, state: .live, touchedAt: now,
                    expiresAt: fate == 6 ? now + .seconds(1) : .distantFuture, revision: 0,
                    body: body(&random))
                changes.append(.put(record, if: .any))
                if fate < 6 { standing[key] = record.body } else { dead.append(record.body) }
            }
            for (key, old) in standing.shuffled(using: &random).prefix(25) {
                dead.append(old)
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    changes.append(.delete(key, if: .any))
                    standing[key] = nil
                case 1:
                    changes.append(.expire(key, at: now, if: .any))
                    standing[key] = nil
                default:
                    let fresh = body(&random)
                    changes.append(
                        .put(
                            StoredRecord(
                                key: key, space: "main/device", owner: owners[0], address: nil,
                                version: 1,
                                state: .live, touchedAt: now, expiresAt: .distantFuture, revision: 0,
                                body: fresh),
                            if: .any))
                    standing[key] = fresh
                }
            }
            #expect(try await engine.apply(changes, now: now) == .committed)
            yard.bury(dead)
        }
        while try await engine.forget(owner: owners[1], limit: 100) > 0 {}
        return Array(standing.values)
    }

    /// Reads that go on for as long as the writers write, so that the log is never without a reader.
    private static func read(_ engine: SQLiteStore, _ now: UnixTime, _ yard: Yard) async throws {
        while !yard.isDone.withLock({ $0 }) {
            let rows = try await engine.page(.space("main/device"), after: 0, limit: 200, now: now)
            _ = try await engine.find(rows.map(\.key), now: now)
        }
    }

    @Test("Of twenty thousand pushes and records under load no piece is left, but of those that still stand")
    func load() async throws {
        let now = clock.now
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 1))
        let yard = Yard()
        var kept = Remains()
        try await withThrowingTaskGroup(of: [[UInt8]].self) { group in
            for seed in 1...8 as ClosedRange<UInt64> {
                group.addTask { try await Self.pushes(engine, seed, now, yard) }
            }
            for seed in 9...10 as ClosedRange<UInt64> {
                group.addTask { try await Self.records(engine, seed, now, yard) }
            }
            group.addTask {
                try await Self.read(engine, now, yard)
                return []
            }
            for _ in 1...10 { for body in try await group.next() ?? [] { kept.add(body) } }
            yard.isDone.withLock { $0 = true }
            try await group.waitForAll()
        }
        let later = now + .seconds(2)
        while try await !engine.endCustody(before: later, limit: 512).isEmpty {}
        while try await engine.purge(before: later, limit: 512) > 0 {}
        // The search finds what is not emptied yet, in the log at least.
        let before = try folder.bytes()
        #expect(yard.gone.withLock { $0.count(in: before) } > 0)
        try await engine.forgetNow()
        let files = try folder.bytes()
        #expect(yard.gone.withLock { $0.count(in: files) } == 0)
        #expect(kept.count(in: files) > 1_000)
        try engine.close()
    }

    @Test(
        "A reader of another program delays forgetting and nothing else, and the log is emptied once it is gone"
    )
    func foreignReader() async throws {
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 1))
        var random = SeededRandom(seed: 4)
        let (key, body) = (Self.digest(&random), Self.body(&random))
        let record = StoredRecord(
            key: key, space: "a/b", owner: nil, address: nil, version: 0, state: .live, touchedAt: clock.now,
            expiresAt: .distantFuture, revision: 0, body: body)
        _ = try await engine.apply([.put(record, if: .any)], now: clock.now)
        var remains = Remains()
        remains.add(body)
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let reader = try DatabaseQueue(path: folder.path, configuration: configuration)
        try await reader.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN")
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM records")
        }
        let running = Task { try await engine.run() }
        _ = try await engine.apply([.delete(key, if: .any)], now: clock.now)
        await #expect(throws: StoreError(.unavailable)) { try await engine.forgetNow() }
        // Others go on, and what they write stands.
        _ = try await engine.apply([.put(Self.plain(9, clock.now), if: .any)], now: clock.now)
        #expect(try await engine.find([Digest16(high: 9, low: 9)], now: clock.now)[0] != nil)
        #expect(remains.count(in: try folder.bytes()) > 0)
        // Asked less and less often, it still comes back once the reader is gone.
        for _ in 0..<3 {
            await clock.sleepers(atLeast: 1)
            clock.advance(by: .seconds(30))
        }
        await clock.sleepers(atLeast: 1)
        try await reader.writeWithoutTransaction { db in try db.execute(sql: "COMMIT") }
        try reader.close()
        clock.advance(by: .seconds(30))
        await clock.sleepers(atLeast: 1)
        #expect(remains.count(in: try folder.bytes()) == 0)
        running.cancel()
        try await running.value
        try engine.close()
    }

    private static func plain(_ number: UInt64, _ now: UnixTime) -> StoredRecord {
        StoredRecord(
            key: Digest16(high: number, low: number), space: "a/b", owner: nil, address: nil, version: 0,
            state: .live, touchedAt: now, expiresAt: .distantFuture, revision: 0, body: [1, 2, 3])
    }

    @Test("The log that a killed process left is emptied at the next start, before anything else is written")
    func killed() async throws {
        let (first, second) = (try TemporaryStore(), try TemporaryStore())
        defer {
            first.remove()
            second.remove()
        }
        var random = SeededRandom(seed: 5)
        var remains = Remains()
        let engine = try SQLiteStore(path: first.path, owner: Self.owner, world: clock.world(seed: 1))
        var record = Self.plain(7, clock.now)
        record.body = Self.body(&random)
        remains.add(record.body)
        _ = try await engine.apply([.put(record, if: .any)], now: clock.now)
        _ = try await engine.apply([.delete(record.key, if: .any)], now: clock.now)
        // What a power cut would leave: the files as they are now.
        for ending in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: first.path + ending, toPath: second.path + ending)
        }
        try engine.close()
        #expect(remains.count(in: try second.bytes()) > 0)
        let next = try SQLiteStore(path: second.path, owner: Self.owner, world: clock.world(seed: 2))
        let running = Task { try await next.run() }
        await clock.sleepers(atLeast: 1)
        clock.advance(by: .milliseconds(500))
        await clock.sleepers(atLeast: 1)
        #expect(remains.count(in: try second.bytes()) == 0)
        running.cancel()
        try await running.value
        try next.close()
    }

    @Test("The log is looked at while there is something in it; then nothing is done until the next commit")
    func rests() async throws {
        let folder = try TemporaryStore()
        defer { folder.remove() }
        let (clock, limits) = (ManualClock(), SQLiteLimits())
        let engine = try SQLiteStore(path: folder.path, owner: Self.owner, world: clock.world(seed: 1))
        let running = Task { try await engine.run() }
        for number in 1...3 {
            await clock.sleepers(atLeast: 1)
            #expect(clock.untilNext == limits.forgetAfter)
            clock.advance(by: limits.forgetAfter)
            await clock.sleepers(atLeast: 1)
            #expect(clock.untilNext == limits.forgetEvery)
            clock.advance(by: .seconds(1))
            #expect(clock.untilNext == limits.forgetEvery - .seconds(1))
            let record = Self.plain(UInt64(number), clock.now)
            _ = try await engine.apply([.put(record, if: .any)], now: clock.now)
            #expect(clock.sleeping == 0 || clock.untilNext == limits.forgetAfter)
        }
        running.cancel()
        try await running.value
        try engine.close()
    }

    @Test("A gap is found in pages of trees alone, and only where all pointers lead to cells")
    func gaps() {
        func gap(_ first: UInt8, cells: [Int], content: Int, size: Int = 512, isFirst: Bool = false) -> Range<
            Int
        >? {
            var page = [UInt8](repeating: 0xEE, count: size)
            let start = isFirst ? 100 : 0
            page[start] = first
            func put(_ value: Int, _ at: Int) {
                page[start + at] = UInt8(value >> 8 & 255)
                page[start + at + 1] = UInt8(value & 255)
            }
            put(cells.count, 3)
            put(content, 5)
            for (index, cell) in cells.enumerated() { put(cell, (first >= 0x0A ? 8 : 12) + 2 * index) }
            return page.withUnsafeBytes { PageGap.find($0, isFirst: isFirst) }
        }
        #expect(gap(0x0D, cells: [500, 480], content: 480) == 12..<480)
        #expect(gap(0x0A, cells: [], content: 512) == 8..<512)
        #expect(gap(0x05, cells: [500], content: 500) == 14..<500)
        #expect(gap(0x02, cells: [500], content: 500) == 14..<500)
        #expect(gap(0x0D, cells: [], content: 0, size: 65_536) == 8..<65_536)
        #expect(gap(0x0D, cells: [500], content: 490, isFirst: true) == 110..<490)
        // Pages of lists and of long rows begin with a page's number.
        #expect(gap(0x00, cells: [500], content: 500) == nil)
        #expect(gap(0x03, cells: [500], content: 500) == nil)
        // No tree's page: a pointer into the gap, one behind the end, more pointers than room.
        #expect(gap(0x0D, cells: [500, 470], content: 480) == nil)
        #expect(gap(0x0D, cells: [512], content: 480) == nil)
        #expect(gap(0x0D, cells: [500], content: 513) == nil)
        #expect(gap(0x0D, cells: [500], content: 9) == nil)
        // No whole page, as in a rollback journal's head.
        #expect(gap(0x0D, cells: [500], content: 500, size: 600) == nil)
    }
}
