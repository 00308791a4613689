import GRDB
import GRDBSQLite
import PushModel

/// A statement that a connection keeps prepared, bound by position through SQLite's own calls.
///
/// GRDB owns the connections, the migrations and the statement cache; binding and reading on the hot path go
/// to SQLite directly, because a row here is a dozen integers and digests and the typed layer costs as much
/// again as the row (this is the part that a measurement forced).
struct SQL {
    fileprivate let statement: OpaquePointer
    private let connection: OpaquePointer?
    private var position: Int32 = 0

    init(_ db: Database, _ text: String) throws { self.init(kept: try db.cachedStatement(sql: text), db) }

    /// A statement of that connection's own, which it keeps for later.
    init(kept: Statement, _ db: Database) {
        statement = kept.sqliteStatement
        connection = db.sqliteConnection
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
    }

    /// A statement that somebody else has prepared and will finalise.
    init(_ statement: OpaquePointer, _ connection: OpaquePointer?) {
        self.statement = statement
        self.connection = connection
    }

    @discardableResult
    mutating func bind(_ value: Int64) -> SQL {
        position += 1
        sqlite3_bind_int64(statement, position, value)
        return self
    }

    mutating func bind(_ value: Int) { bind(Int64(value)) }
    mutating func bind(_ value: UnixTime) { bind(value.milliseconds) }

    /// Eight big-endian bytes, for SQLite's integers are signed and versions are not.
    mutating func bind(version: UInt64) { withUnsafeBytes(of: version.bigEndian) { bind($0) } }

    mutating func bind(_ value: Digest16?) {
        guard let value else { return skip() }
        withUnsafeBytes(of: (value.high.bigEndian, value.low.bigEndian)) { bind($0) }
    }

    /// What ``SQLiteRecords/isKey`` needs.
    mutating func bind(slotOf key: Digest16) {
        let slots = SQLiteRecords.slots(of: key)
        bind(slots.lowerBound)
        bind(slots.upperBound)
        bind(key)
    }

    /// The same in a statement that has run, and of which it is all.
    mutating func bindAnew(slotOf key: Digest16) {
        position = 0
        bind(slotOf: key)
    }

    mutating func bind(_ value: [UInt8]) { value.withUnsafeBytes { bind($0) } }

    mutating func bind(_ value: UnsafeRawBufferPointer) {
        position += 1
        // SQLITE_TRANSIENT: SQLite copies, since the buffer is only lent.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        if let base = value.baseAddress, value.count > 0 {
            sqlite3_bind_blob(statement, position, base, Int32(value.count), transient)
        } else {
            sqlite3_bind_zeroblob(statement, position, 0)
        }
    }

    /// Binds bytes without a copy: until ``release()`` they must stay where they are.
    mutating func bind(lent value: UnsafeRawBufferPointer) {
        position += 1
        if let base = value.baseAddress, value.count > 0 {
            sqlite3_bind_blob(statement, position, base, Int32(value.count), nil)
        } else {
            sqlite3_bind_zeroblob(statement, position, 0)
        }
    }

    /// Binds a digest that is laid down there.
    mutating func bind(_ value: Digest16?, at place: BoundDigests.Place) {
        guard let value else { return skip() }
        bind(lent: place.lay(value))
    }

    /// Forgets what was bound. The statement must have run.
    func release() { sqlite3_clear_bindings(statement) }

    mutating func bind(_ value: String) {
        position += 1
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        var value = value
        value.withUTF8 { text in
            // Of an empty one there is nothing to point at, and without that SQLite would bind NULL.
            guard let base = text.baseAddress, text.count > 0 else {
                sqlite3_bind_text(statement, position, "", 0, transient)
                return
            }
            let start = UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self)
            sqlite3_bind_text(statement, position, start, Int32(text.count), transient)
        }
    }

    /// Leaves NULL.
    mutating func skip() { position += 1 }

    /// True when there is a row to read.
    func step() throws -> Bool {
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw SQLFault(code: code)
        }
    }

    /// Runs a statement that gives no rows, and lets its locks go.
    func run() throws {
        defer { sqlite3_reset(statement) }
        while try step() {}
    }

    /// How many rows the last `run` changed.
    var changed: Int { Int(sqlite3_changes(connection)) }

    /// Lets a query's locks go before its last row was read.
    func finish() { sqlite3_reset(statement) }

    func int(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
    func time(_ column: Int32) -> UnixTime { UnixTime(milliseconds: int(column)) }
    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

    func text(_ column: Int32) -> String {
        sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
    }

    func bytes(_ column: Int32) -> [UInt8] { withBytes(column) { Array($0) } }

    func withBytes<Result>(_ column: Int32, _ read: (UnsafeRawBufferPointer) -> Result) -> Result {
        let base = sqlite3_column_blob(statement, column)
        let count = Int(sqlite3_column_bytes(statement, column))
        return read(UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : count))
    }
}

/// A statement that every push needs: found by reference, because hashing a long text costs more than binding
/// its values.
///
/// The code that has bound it runs it and releases it (``SQL/release()``) before it is asked for again, so
/// that nothing bound is left in it.
struct KnownStatement {
    private let text: String
    /// The connection alone holds it, and lets it go when the schema changes or the file is closed.
    private weak var statement: Statement?

    init(_ text: String) { self.text = text }

    mutating func sql(_ db: Database) throws -> SQL {
        // Of this connection and of no other.
        if let statement, sqlite3_db_handle(statement.sqliteStatement) == db.sqliteConnection {
            return SQL(statement.sqliteStatement, db.sqliteConnection)
        }
        let found = try db.cachedStatement(sql: text)
        statement = found
        return SQL(kept: found, db)
    }
}

/// Where digests stand while a statement runs that does not copy them.
final class BoundDigests {
    /// Of 16 bytes.
    struct Place {
        fileprivate let bytes: UnsafeMutableRawBufferPointer

        fileprivate func lay(_ digest: Digest16) -> UnsafeRawBufferPointer {
            bytes.storeBytes(of: digest.high.bigEndian, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: digest.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            return UnsafeRawBufferPointer(bytes)
        }
    }

    private let places: [Place]

    init(places: Int) {
        self.places = (0..<places).map { _ in Place(bytes: .allocate(byteCount: 16, alignment: 8)) }
    }

    deinit { for place in places { place.bytes.deallocate() } }

    subscript(_ number: Int) -> Place { places[number] }
}

/// The columns of a stored row. SQLite keeps a value of any type in any column, so each is looked at: what
/// was not written by us is `nil`, and its row cannot be read.
extension SQL {
    func integer(_ column: Int32, in range: ClosedRange<Int64>) -> Int64? {
        guard sqlite3_column_type(statement, column) == SQLITE_INTEGER else { return nil }
        let value = int(column)
        return range.contains(value) ? value : nil
    }

    func moment(_ column: Int32) -> UnixTime? {
        integer(column, in: RowBounds.times).map { UnixTime(milliseconds: $0) }
    }

    ///
    /// - Parameter last: what the row before held, which is handed on where it is the same.
    func name(_ column: Int32, after last: String? = nil) -> String? {
        guard sqlite3_column_type(statement, column) == SQLITE_TEXT,
            let base = sqlite3_column_text(statement, column)
        else { return nil }
        let count = Int(sqlite3_column_bytes(statement, column))
        guard count <= RowBounds.textBytes else { return nil }
        let bytes = UnsafeBufferPointer(start: base, count: count)
        if var last, last.withUTF8({ Self.areEqual($0, bytes) }) { return last }
        // Ours are ASCII, which needs no look at each character.
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Byte by byte: the library's comparison of two sequences costs as much as the string that it spares.
    private static func areEqual(
        _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        left.count == right.count && left.indices.allSatisfy { left[$0] == right[$0] }
    }

    /// Whether a text begins so, whatever stands behind it.
    func begins(_ column: Int32, with text: [UInt8]) -> Bool {
        guard sqlite3_column_type(statement, column) == SQLITE_TEXT else { return false }
        return withBytes(column) { bytes in
            bytes.count >= text.count && text.indices.allSatisfy { bytes[$0] == text[$0] }
        }
    }

    /// Eight bytes, the highest first.
    func number(_ column: Int32) -> UInt64? {
        guard sqlite3_column_type(statement, column) == SQLITE_BLOB else { return nil }
        return withBytes(column) { bytes in
            bytes.count == 8 ? UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)) : nil
        }
    }

    func blob(_ column: Int32) -> [UInt8]? {
        guard sqlite3_column_type(statement, column) == SQLITE_BLOB,
            sqlite3_column_bytes(statement, column) <= RowBounds.sealedBytes
        else { return nil }
        return bytes(column)
    }

    func digest(_ column: Int32) -> Digest16? {
        guard sqlite3_column_type(statement, column) == SQLITE_BLOB else { return nil }
        return withBytes(column) { Digest16($0) }
    }

    /// `.some(nil)` for NULL.
    func digestIfAny(_ column: Int32) -> Digest16?? {
        isNull(column) ? .some(nil) : digest(column).map { .some($0) }
    }

    /// `nil` also if there is none: only the answer to a repeat depends on it.
    func outcome(_ column: Int32) -> OutcomeKind? {
        integer(column, in: 0...255).flatMap { OutcomeKind(rawValue: UInt8($0)) }
    }
}

/// A result code of SQLite. Its message is dropped: it may quote a value.
struct SQLFault: Error {
    let code: Int32

    /// A number that was to be new stands already.
    var isTaken: Bool { code & 0xFF == SQLITE_CONSTRAINT }

    var asStoreError: StoreError {
        switch code & 0xFF {
        case SQLITE_CORRUPT, SQLITE_NOTADB: StoreError(.corrupt)
        case SQLITE_FULL: StoreError(.noSpace)
        case SQLITE_READONLY: StoreError(.readOnly)
        default: StoreError(.unavailable)
        }
    }

    static func translate(_ error: any Error) -> StoreError {
        switch error {
        case let fault as SQLFault: fault.asStoreError
        case let error as StoreError: error
        case let error as DatabaseError: SQLFault(code: error.resultCode.rawValue).asStoreError
        default: StoreError(.unavailable)
        }
    }
}

extension Database {
    enum Transaction: String {
        case deferred = "BEGIN DEFERRED TRANSACTION"
        case immediate = "BEGIN IMMEDIATE TRANSACTION"
    }

    /// Commits what `body` does, or takes it back and throws. As `inTransaction`, which prepares its own
    /// statements anew each time; with one push a commit that is a thirtieth of the push.
    func transact(_ kind: Transaction, _ body: () throws -> Void) throws {
        try cachedStatement(sql: kind.rawValue).execute()
        do {
            try body()
            // Ended by a fault that `body` has caught: nothing after the fault was in a transaction.
            guard isInsideTransaction else { throw SQLFault(code: SQLITE_ABORT) }
            try cachedStatement(sql: "COMMIT TRANSACTION").execute()
        } catch {
            // Some faults have ended it already.
            if isInsideTransaction { try? rollback() }
            throw error
        }
    }
}
