import Foundation
import GRDBSQLite
import PushTesting
import Testing

@testable import SQLiteStore

/// Frames that wait for their commit (``HeldFrames``), by themselves and beside SQLite's own way to files.
@Suite struct HeldFramesTests {
    private static let page = 4096

    /// What came to the file, write by write.
    private final class Disk {
        var writes: [(offset: Int64, bytes: [UInt8])] = []
        var answer = SQLITE_OK

        func write(_ bytes: UnsafeRawBufferPointer, _ offset: sqlite3_int64) -> CInt {
            guard answer == SQLITE_OK else { return answer }
            writes.append((offset, Array(bytes)))
            return SQLITE_OK
        }
    }

    private static func head(commits: Bool) -> [UInt8] {
        var head = [UInt8](repeating: 7, count: 24)
        head.replaceSubrange(4..<8, with: [0, 0, 0, commits ? 9 : 0])
        return head
    }

    private static func append(
        _ count: Int, to frames: inout HeldFrames, at first: Int = 0, commits: Bool, _ disk: Disk
    ) -> [CInt] {
        (first..<first + count).flatMap { number -> [CInt] in
            let offset = Int64(32 + number * (24 + page))
            let isLast = number == first + count - 1
            return [
                head(commits: commits && isLast)
                    .withUnsafeBytes { frames.write($0, offset, by: disk.write) },
                [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: page)
                    .withUnsafeBytes { frames.write($0, offset + 24, by: disk.write) }
            ]
        }
    }

    @Test("A commit is one write for each 64 KiB, and nothing waits behind it", arguments: [1, 15, 16, 67])
    func commit(count: Int) {
        let disk = Disk()
        var frames = HeldFrames()
        defer { frames.close() }
        #expect(Self.append(count, to: &frames, commits: true, disk).allSatisfy { $0 == SQLITE_OK })
        let total = count * (24 + Self.page)
        #expect(disk.writes.count == (total + HeldFrames.room - 1) / HeldFrames.room)
        #expect(disk.writes.map(\.bytes.count).reduce(0, +) == total)
        var next: Int64 = 32
        for write in disk.writes {
            #expect(write.offset == next)
            next += Int64(write.bytes.count)
        }
        #expect(disk.writes.last?.bytes.last == UInt8(truncatingIfNeeded: count - 1))
    }

    @Test("What has not been committed waits, and is written when the lock is given up")
    func rollback() {
        let disk = Disk()
        var frames = HeldFrames()
        defer { frames.close() }
        _ = Self.append(3, to: &frames, commits: false, disk)
        #expect(disk.writes.isEmpty)
        frames.end(by: disk.write)
        #expect(disk.writes.map(\.bytes.count) == [3 * (24 + Self.page)])
        // The next transaction begins where this one did.
        _ = Self.append(1, to: &frames, commits: true, disk)
        #expect(disk.writes.map(\.offset) == [32, 32])
    }

    @Test("A page that changes twice is written again at once, behind what was held")
    func again() {
        let disk = Disk()
        var frames = HeldFrames()
        defer { frames.close() }
        _ = Self.append(2, to: &frames, commits: false, disk)
        let code = [UInt8](repeating: 0xEE, count: Self.page)
            .withUnsafeBytes { frames.write($0, 32 + 24, by: disk.write) }
        #expect(code == SQLITE_OK)
        #expect(disk.writes.map(\.offset) == [32, 56])
        _ = Self.append(1, to: &frames, at: 2, commits: true, disk)
        #expect(disk.writes.count == 3)
    }

    @Test("A head that is written anew, with the commit's mark, does not wait")
    func checksums() {
        let disk = Disk()
        var frames = HeldFrames()
        defer { frames.close() }
        _ = Self.append(2, to: &frames, commits: true, disk)
        _ = Self.head(commits: true).withUnsafeBytes {
            frames.write($0, Int64(32 + 24 + Self.page), by: disk.write)
        }
        #expect(disk.writes.map(\.bytes.count) == [2 * (24 + Self.page), 24])
    }

    @Test("After a write that failed, nothing of the transaction succeeds; the next one may")
    func failure() {
        let disk = Disk()
        var frames = HeldFrames()
        defer { frames.close() }
        _ = Self.append(3, to: &frames, commits: false, disk)
        disk.answer = SQLITE_FULL
        // As a read would.
        #expect(frames.flush(by: disk.write) == SQLITE_FULL)
        disk.answer = SQLITE_OK
        #expect(frames.flush(by: disk.write) == SQLITE_FULL)
        #expect(
            Self.append(1, to: &frames, at: 3, commits: true, disk).allSatisfy { $0 == SQLITE_FULL })
        #expect(disk.writes.isEmpty)
        frames.end(by: disk.write)
        #expect(Self.append(1, to: &frames, commits: true, disk).allSatisfy { $0 == SQLITE_OK })
        #expect(disk.writes.count == 1)
    }

    @Test("After a write that failed, all is read but what was lost")
    func lost() {
        let disk = Disk()
        var frames = HeldFrames()
        defer { frames.close() }
        _ = Self.append(2, to: &frames, at: 3, commits: false, disk)
        let (start, end) = (Int64(32 + 3 * (24 + Self.page)), Int64(32 + 5 * (24 + Self.page)))
        disk.answer = SQLITE_FULL
        #expect(frames.read(0..<32, by: disk.write) == SQLITE_FULL)
        #expect(frames.read(0..<start, by: disk.write) == SQLITE_OK)
        #expect(frames.read(end..<end + 10, by: disk.write) == SQLITE_OK)
        #expect(frames.read(start - 1..<start + 1, by: disk.write) == SQLITE_FULL)
        #expect(frames.read(end - 1..<end, by: disk.write) == SQLITE_FULL)
        frames.end(by: disk.write)
        #expect(frames.read(start..<end, by: disk.write) == SQLITE_OK)
    }

    @Test("A full disk costs the transaction that meets it, and the connection goes on")
    func fullDisk() throws {
        try BlankingFiles.install()
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let path = folder.file("kept.sqlite")
        let ours = try Connection(path, vfs: "sealbell")
        defer { ours.close() }
        ours.run("PRAGMA journal_mode = WAL; PRAGMA cache_spill = OFF")
        ours.run("CREATE TABLE kept (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        ours.run("INSERT INTO kept VALUES (1, 'stays')")
        var journal: UnsafeMutablePointer<sqlite3_file>?
        sqlite3_file_control(ours.handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal)
        let log = OpenFile.of(try #require(journal))
        let usual = log.pointee.calls
        let full = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        defer { full.deallocate() }
        full.initialize(to: usual.pointee)
        full.pointee.xWrite = { _, _, _, _ in SQLITE_FULL }

        log.pointee.calls = UnsafePointer(full)
        for _ in 0..<3 {
            let body = String(repeating: "x", count: 50_000)
            let code = sqlite3_exec(ours.handle, "INSERT INTO kept VALUES (2, '\(body)')", nil, nil, nil)
            #expect(code == SQLITE_FULL)
            #expect(try ours.rows() == [1: "stays"])
        }
        log.pointee.calls = usual
        ours.run("INSERT INTO kept VALUES (3, 'more')")
        #expect(try ours.rows() == [1: "stays", 3: "more"])
        #expect(try Self.found(path, in: URL(filePath: folder.path)) == [1: "stays", 3: "more"])
    }

    // MARK: Beside SQLite's own way

    /// A connection, by our way to files or by the library's.
    private struct Connection {
        let handle: OpaquePointer

        init(_ path: String, vfs: String) throws {
            var opened: OpaquePointer?
            let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            try #require(sqlite3_open_v2(path, &opened, flags, vfs) == SQLITE_OK)
            handle = try #require(opened)
            sqlite3_busy_timeout(handle, 10_000)
            run("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0")
        }

        func close() { sqlite3_close(handle) }

        func run(_ sql: String) {
            let code = sqlite3_exec(handle, sql, nil, nil, nil)
            #expect(code == SQLITE_OK, "\(sql): \(String(cString: sqlite3_errmsg(handle)))")
        }

        /// Each row's number and text.
        func rows(_ sql: String = "SELECT id, body FROM kept") throws -> [Int: String] {
            var statement: OpaquePointer?
            try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
            defer { sqlite3_finalize(statement) }
            var rows: [Int: String] = [:]
            while sqlite3_step(statement) == SQLITE_ROW {
                rows[Int(sqlite3_column_int64(statement, 0))] =
                    sqlite3_column_text(statement, 1).map { String(cString: $0) }
            }
            return rows
        }
    }

    /// What somebody finds who has only the files, as after a crash of the process.
    private static func found(_ path: String, in folder: URL) throws -> [Int: String] {
        let copy = folder.appendingPathComponent("copy").path
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: copy + suffix)
            if suffix != "-shm" {
                try? FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
            }
        }
        let reader = try Connection(copy, vfs: "unix")
        defer { reader.close() }
        #expect(try reader.rows("SELECT 0, integrity_check FROM pragma_integrity_check") == [0: "ok"])
        return try reader.rows()
    }

    @Test(
        "Whoever reads and writes beside us, and whoever finds the files, sees what was committed",
        arguments: 1...6 as ClosedRange<UInt64>)
    func beside(seed: UInt64) throws {
        try BlankingFiles.install()
        var random = SeededRandom(seed: seed)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("kept.sqlite").path
        let ours = try Connection(path, vfs: "sealbell")
        defer { ours.close() }
        // So few pages in memory that transactions write frames long before they commit. Savepoints go with
        // the store's setting alone (decision 0134).
        let spills = seed % 2 == 1
        ours.run("PRAGMA journal_mode = WAL; PRAGMA cache_size = 4; PRAGMA cache_spill = \(spills ? 1 : 0)")
        ours.run("CREATE TABLE kept (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        let plain = try Connection(path, vfs: "unix")
        defer { plain.close() }

        /// - Returns: what the table holds afterwards.
        func write(_ count: Int, to rows: [Int: String], by connection: Connection) -> [Int: String] {
            var rows = rows
            for _ in 0..<count {
                let id = Int.random(in: 0..<60, using: &random)
                if Int.random(in: 0..<4, using: &random) == 0 {
                    connection.run("DELETE FROM kept WHERE id = \(id)")
                    rows[id] = nil
                } else {
                    let body = String(
                        repeating: "\(random.next())", count: .random(in: 1..<300, using: &random))
                    connection.run("REPLACE INTO kept VALUES (\(id), '\(body)')")
                    rows[id] = body
                }
            }
            return rows
        }

        var committed: [Int: String] = [:]
        for turn in 0..<60 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                committed = write(3, to: committed, by: plain)
            case 1:
                plain.run("PRAGMA wal_checkpoint(TRUNCATE)")
            case 2:
                ours.run("PRAGMA wal_checkpoint(RESTART)")
            case 3:
                ours.run("BEGIN IMMEDIATE")
                _ = write(.random(in: 1..<80, using: &random), to: committed, by: ours)
                #expect(try plain.rows() == committed)
                ours.run("ROLLBACK")
                // Somebody else writes where those frames would have been, before we look.
                committed = write(.random(in: 0..<8, using: &random), to: committed, by: plain)
            default:
                ours.run("BEGIN IMMEDIATE")
                var rows = write(.random(in: 1..<40, using: &random), to: committed, by: ours)
                if !spills, Bool.random(using: &random) {
                    ours.run("SAVEPOINT inner")
                    _ = write(.random(in: 1..<60, using: &random), to: rows, by: ours)
                    ours.run("ROLLBACK TO inner")
                    rows = write(.random(in: 1..<20, using: &random), to: rows, by: ours)
                }
                #expect(try ours.rows() == rows)
                if turn % 5 == 0 { #expect(try Self.found(path, in: folder) == committed) }
                ours.run("COMMIT")
                committed = rows
            }
            #expect(try plain.rows() == committed)
            #expect(try ours.rows() == committed)
            if turn % 5 == 0 { #expect(try Self.found(path, in: folder) == committed) }
        }
    }
}
