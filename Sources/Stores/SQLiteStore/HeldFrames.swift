import GRDBSQLite

/// Frames that a transaction appends to the log, until they are written together.
///
/// SQLite writes a frame's head (24 bytes) and its page each by a system call: more than one a push. Here
/// they wait for the frame that commits, for any other use of the log, or for the end of the lock on writing,
/// whichever comes first. So the file has the same bytes, written in the same order, before anybody else may
/// read them: a frame counts only when the index names it, which happens after the commit's frame (and its
/// sync), and another writer needs the lock.
///
/// Writes that do not append are made at once: SQLite overwrites frames of the same transaction when a page
/// changes twice.
struct HeldFrames {
    /// Bytes at most; 15 frames with their pages of 4 KiB.
    static let room = 65_536
    private static let headOfFile = 32
    private static let headOfFrame = 24

    private var bytes: UnsafeMutableRawBufferPointer?
    /// Where in the file the first held byte belongs.
    private var start: sqlite3_int64 = 0
    private var count = 0
    /// Behind the last byte that this transaction wrote or holds.
    private var edge: sqlite3_int64 = 0
    /// Whether the frame at the end commits.
    private var commits = false
    /// A write failed that SQLite believes done: its code, and the bytes that are not in the file. The
    /// transaction must then not commit and not read those bytes; it may read all others, as a rollback does.
    private var failure = SQLITE_OK
    private var lost: Range<sqlite3_int64>?

    typealias Writing = (UnsafeRawBufferPointer, sqlite3_int64) -> CInt

    /// Holds what appends, and writes the rest.
    ///
    /// - Returns: SQLite's code, as of each call here.
    mutating func write(
        _ given: UnsafeRawBufferPointer, _ offset: sqlite3_int64, by write: Writing
    ) -> CInt {
        guard failure == SQLITE_OK else { return failure }
        guard offset >= max(edge, sqlite3_int64(Self.headOfFile)), given.count <= Self.room else {
            let result = flush(by: write)
            // The head of a file begins a new log.
            if offset == 0 { edge = 0 }
            return result == SQLITE_OK ? write(given, offset) : result
        }
        let isHead = given.count == Self.headOfFrame
        if isHead { commits = given[4..<8].contains { $0 != 0 } }
        if offset != start + sqlite3_int64(count) || count + given.count > Self.room {
            let result = flush(by: write)
            guard result == SQLITE_OK else { return result }
        }
        let into = held()
        if count == 0 { start = offset }
        UnsafeMutableRawBufferPointer(rebasing: into[count...]).copyMemory(from: given)
        count += given.count
        edge = offset + sqlite3_int64(given.count)
        return commits && !isHead ? flush(by: write) : SQLITE_OK
    }

    /// Writes what is held.
    mutating func flush(by write: Writing) -> CInt {
        guard failure == SQLITE_OK else { return failure }
        guard count > 0, let bytes else { return SQLITE_OK }
        failure = write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), start)
        if failure != SQLITE_OK { lost = start..<start + sqlite3_int64(count) }
        count = 0
        return failure
    }

    /// Makes ready to read: what is held is written first.
    mutating func read(_ place: Range<sqlite3_int64>, by write: Writing) -> CInt {
        guard let lost else { return flush(by: write) }
        return lost.overlaps(place) ? failure : SQLITE_OK
    }

    /// The transaction is over. Frames that it did not commit do not count, whether written or not; they are
    /// still written, as SQLite would have done.
    mutating func end(by write: Writing) {
        _ = flush(by: write)
        edge = 0
        commits = false
        (failure, lost) = (SQLITE_OK, nil)
    }

    /// Gives the memory back.
    mutating func close() {
        bytes?.deallocate()
        bytes = nil
        count = 0
    }

    private mutating func held() -> UnsafeMutableRawBufferPointer {
        if let bytes { return bytes }
        let made = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.room, alignment: 16)
        bytes = made
        return made
    }
}
