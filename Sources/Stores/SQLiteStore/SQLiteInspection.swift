#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import GRDB
import GRDBSQLite
package import PushModel

/// What a look into a store's file shows, beside a running relay or without one, without owning it.
///
/// Nothing is written. A store with a write-ahead log is read like by any other reader; a store without one
/// is opened as a file that does not change, so that not even an empty log is left behind.
package struct SQLiteInspection: Sendable {
    /// How SQLite's own check of the file's structure ended.
    package enum Soundness: Sendable, Hashable {
        case sound, damaged
        /// The file is too large for the span that was given.
        case unfinished
    }

    /// The sealed check values, by name.
    package var checks: [String: [UInt8]]
    /// `nil`: counting took longer than the span that was given.
    package var owed: OwedSum?
    package var soundness: Soundness
    /// Records that could not be read and were set aside.
    package var recordsAside = 0
    /// The store's own last time, where it has one.
    package var lastTime: UnixTime?
    /// Why no relay starts on it: it was copied elsewhere (`.moved`), or is half of a copy (`.unfinished`).
    package var bar: StoreError.Code?

    /// Looks into the file.
    ///
    /// - Parameter span: for counting, and again for checking; if either takes longer, its result is left
    ///   out. A reader keeps the relay from emptying its log, so the span must be short.
    /// - Throws: `.unavailable` when this user may not read it, `.corrupt`, `.newerSchema`.
    package static func look(
        at path: String, within span: Duration, _ instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws(StoreError) -> SQLiteInspection {
        let isLogged = access(path + "-wal", F_OK) == 0
        do throws(StoreError) {
            let found = try read(path, isFixed: !isLogged, span, instant)
            if found.soundness != .damaged { return found }
        } catch {
            guard error.code == .corrupt else { throw error }
        }
        // Read as a file that does not change while a relay was just starting: the second look decides.
        return try read(path, isFixed: !isLogged && access(path + "-wal", F_OK) != 0, span, instant)
    }

    private static func read(
        _ path: String, isFixed: Bool, _ span: Duration,
        _ instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws(StoreError) -> SQLiteInspection {
        let file = try ReadOnlyFile(path, isFixed: isFixed, instant)
        defer { file.close() }
        do {
            var tables: Set<String> = []
            try file.rows("SELECT name FROM sqlite_master WHERE type = 'table'") { tables.insert($0.text(0)) }
            // Made, and ended before its first commit.
            guard tables.contains("settings"), tables.contains("outbox") else {
                return SQLiteInspection(checks: [:], owed: OwedSum(), soundness: .sound)
            }
            try checkSchema(file)
            var checks: [String: [UInt8]] = [:]
            try file.rows("SELECT name, value FROM settings WHERE name LIKE 'check/%' LIMIT 2000") {
                checks[$0.text(0)] = $0.bytes(1)
            }
            var lastTime: UnixTime?
            try file.rows("SELECT value FROM settings WHERE name = '\(LastTime.setting)'") {
                lastTime = LastTime.time($0.bytes(0))
            }
            var bar: StoreError.Code?
            for (name, code) in [
                (StoreSetting.copiedTo, StoreError.Code.moved), (StoreSetting.filledFrom, .unfinished)
            ] {
                try file.rows("SELECT 1 FROM settings WHERE name = '\(name)'") { _ in bar = code }
            }
            var recordsAside = 0
            try file.rows(SQLiteRecords.aside) { recordsAside = Int($0.int(0)) }
            file.giveUp(after: span)
            let owed = try unlessLate { try count(file) }
            file.giveUp(after: span)
            let words = try unlessLate { () throws -> String in
                var word = ""
                try file.rows("PRAGMA quick_check(1)") { word = $0.text(0) }
                return word
            }
            return SQLiteInspection(
                checks: checks, owed: owed,
                soundness: words.map { $0 == "ok" ? .sound : .damaged } ?? .unfinished,
                recordsAside: recordsAside, lastTime: lastTime, bar: bar)
        } catch {
            throw SQLFault.translate(error)
        }
    }

    /// - Returns: the steps that the file has taken.
    @discardableResult
    static func checkSchema(_ file: ReadOnlyFile) throws -> Set<String> {
        var steps: Set<String> = []
        try file.rows("SELECT identifier FROM grdb_migrations") { steps.insert($0.text(0)) }
        guard steps.subtracting(SQLiteSchema.migrator.migrations).isEmpty else {
            throw StoreError(.newerSchema)
        }
        return steps
    }

    private static func count(_ file: ReadOnlyFile) throws -> OwedSum {
        var owed = OwedSum()
        try file.rows("SELECT lane, count(*), sum(length(sealed)) FROM outbox GROUP BY lane") { row in
            owed.lanes[row.text(0)] = Int(row.int(1))
            owed.rows += Int(row.int(1))
            owed.bytes += Int(row.int(2))
        }
        // Rows are numbered in the order of their commits.
        try file.rows("SELECT id FROM outbox ORDER BY seq LIMIT 1") { row in
            owed.oldest = Digest16(row.bytes(0)).map { PushID($0) }
        }
        return owed
    }

    /// `nil` when the span was over.
    private static func unlessLate<Value>(_ read: () throws -> Value) throws -> Value? {
        do { return try read() } catch let fault as SQLFault where fault.code & 0xFF == SQLITE_INTERRUPT {
            return nil
        }
    }
}

/// One connection that can write nothing, through SQLite's own calls: GRDB opens no file by URI.
final class ReadOnlyFile {
    struct Row {
        fileprivate let statement: OpaquePointer?

        func int(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
        func text(_ column: Int32) -> String {
            sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        }
        func bytes(_ column: Int32) -> [UInt8] {
            let base = sqlite3_column_blob(statement, column)
            let count = Int(sqlite3_column_bytes(statement, column))
            return Array(UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : count))
        }
    }

    /// When to give up; read by SQLite in the middle of a statement, on the same thread.
    private final class Limit {
        var end: ContinuousClock.Instant?
        let instant: @Sendable () -> ContinuousClock.Instant
        init(_ instant: @escaping @Sendable () -> ContinuousClock.Instant) { self.instant = instant }
    }

    /// Steps of SQLite's machine between two looks at the clock: some milliseconds.
    private static let stepsPerLook: Int32 = 20_000

    private var connection: OpaquePointer?
    private let limit: Limit

    /// - Parameter isFixed: nobody writes the file, and it has no log.
    init(
        _ path: String, isFixed: Bool, _ instant: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws(StoreError) {
        limit = Limit(instant)
        let uri = "file:" + Self.escaped(path) + (isFixed ? "?immutable=1" : "?mode=ro")
        let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(uri, &connection, flags, nil) == SQLITE_OK else {
            sqlite3_close_v2(connection)
            throw StoreError(.unavailable)
        }
        sqlite3_busy_timeout(connection, 5_000)
        sqlite3_progress_handler(
            connection, Self.stepsPerLook,
            { context in
                guard let context else { return 0 }
                let limit = Unmanaged<Limit>.fromOpaque(context).takeUnretainedValue()
                return limit.end.map { limit.instant() >= $0 } ?? false ? 1 : 0
            }, Unmanaged.passUnretained(limit).toOpaque())
    }

    func close() {
        sqlite3_close_v2(connection)
        connection = nil
    }

    func giveUp(after span: Duration) { limit.end = limit.instant() + span }

    func rows(_ text: String, _ take: (Row) -> Void) throws {
        var statement: OpaquePointer?
        let prepared = sqlite3_prepare_v2(connection, text, -1, &statement, nil)
        guard prepared == SQLITE_OK else { throw SQLFault(code: prepared) }
        defer { sqlite3_finalize(statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: take(Row(statement: statement))
            case SQLITE_DONE: return
            case let code: throw SQLFault(code: code)
            }
        }
    }

    /// Lends a prepared statement.
    func statement<Value>(_ text: String, _ use: (SQL) throws -> Value) throws -> Value {
        var statement: OpaquePointer?
        let prepared = sqlite3_prepare_v2(connection, text, -1, &statement, nil)
        guard prepared == SQLITE_OK, let statement else { throw SQLFault(code: prepared) }
        defer { sqlite3_finalize(statement) }
        return try use(SQL(statement, connection))
    }

    /// A path as a URI has it: everything but letters, digits and `/-._~` percent-encoded (RFC 3986 §2.3).
    private static func escaped(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in path.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: text.append(byte)
            default: text += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
