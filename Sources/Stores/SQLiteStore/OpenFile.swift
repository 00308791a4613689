import GRDBSQLite

/// What ``BlankingFiles`` knows of an open database or log. It stands behind SQLite's own structure of the
/// file, in the same block, and is used by the thread that uses the connection.
struct OpenFile {
    /// The base's own. The file's table may be that of a layer above.
    var calls: UnsafePointer<sqlite3_io_methods>
    /// Of a log, its database; of a database, its log while that is open.
    private var other: UnsafeMutablePointer<sqlite3_file>?
    private var frames = HeldFrames()

    init(calls: UnsafePointer<sqlite3_io_methods>) { self.calls = calls }

    /// Bytes from a file's address to ours: the base's structure, aligned.
    static let place: Int = {
        let alignment = MemoryLayout<OpenFile>.alignment
        return (Int(BlankingFiles.base?.pointee.szOsFile ?? 0) + alignment - 1) / alignment * alignment
    }()

    static func of(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<OpenFile> {
        (UnsafeMutableRawPointer(file) + place).assumingMemoryBound(to: OpenFile.self)
    }

    /// Joins a log and its database.
    ///
    /// - Returns: whether the log's frames may be held. On a disk that may damage the surroundings of a
    ///   write, SQLite pads commits and divides pages, and then a write cannot be recognised.
    mutating func belongs(
        to database: UnsafeMutablePointer<sqlite3_file>?, _ log: UnsafeMutablePointer<sqlite3_file>
    ) -> Bool {
        guard let database, database.pointee.pMethods != nil else { return false }
        let its = OpenFile.of(database)
        let traits = its.pointee.calls.pointee.xDeviceCharacteristics?(database) ?? 0
        guard traits & SQLITE_IOCAP_POWERSAFE_OVERWRITE != 0, its.pointee.calls.pointee.iVersion >= 2 else {
            return false
        }
        its.pointee.other = log
        other = database
        return true
    }

    // MARK: SQLite's calls of a database

    /// The write lock is number 0. Before it is given up, everything held is written.
    static func lock(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ first: CInt, _ count: CInt, _ flags: CInt
    ) -> CInt {
        guard let file, let lock = of(file).pointee.calls.pointee.xShmLock else { return SQLITE_IOERR }
        let ends = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE
        if first == 0, flags & ends == ends, let log = of(file).pointee.other {
            let base = of(log).pointee.calls
            of(log).pointee.frames.end { pass($0, $1, to: log, base) }
        }
        return lock(file, first, count, flags)
    }

    // MARK: SQLite's calls of a log

    /// Puts ours in the place of the base's where they differ.
    static func answer(_ calls: inout sqlite3_io_methods) {
        calls.xWrite = { OpenFile.write($0, $1, $2, $3) }
        calls.xRead = { OpenFile.read($0, $1, $2, $3) }
        calls.xTruncate = { file, length in OpenFile.settled(file) { $1.xTruncate?($0, length) } }
        calls.xSync = { file, flags in OpenFile.settled(file) { $1.xSync?($0, flags) } }
        calls.xFileSize = { file, size in OpenFile.settled(file) { $1.xFileSize?($0, size) } }
        calls.xClose = { OpenFile.close($0) }
    }

    private static func write(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ bytes: UnsafeRawPointer?, _ count: CInt,
        _ offset: sqlite3_int64
    ) -> CInt {
        guard let file, let bytes, count >= 0 else { return SQLITE_IOERR }
        let base = of(file).pointee.calls
        let given = UnsafeRawBufferPointer(start: bytes, count: Int(count))
        return of(file).pointee.frames.write(given, offset) { pass($0, $1, to: file, base) }
    }

    private static func read(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ bytes: UnsafeMutableRawPointer?, _ count: CInt,
        _ offset: sqlite3_int64
    ) -> CInt {
        guard let file, count >= 0, offset >= 0 else { return SQLITE_IOERR }
        let base = of(file).pointee.calls
        let place = offset..<offset + sqlite3_int64(count)
        let result = of(file).pointee.frames.read(place) { pass($0, $1, to: file, base) }
        guard result == SQLITE_OK else { return result }
        return base.pointee.xRead?(file, bytes, count, offset) ?? SQLITE_IOERR
    }

    private static func close(_ file: UnsafeMutablePointer<sqlite3_file>?) -> CInt {
        guard let file else { return SQLITE_IOERR }
        if let database = of(file).pointee.other, of(database).pointee.other == file {
            of(database).pointee.other = nil
        }
        // Nothing is held: the lock on writing was given up.
        of(file).pointee.frames.close()
        return of(file).pointee.calls.pointee.xClose?(file) ?? SQLITE_IOERR
    }

    /// A sync, or any other use of the log, first writes everything that is held, or fails.
    private static func settled(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ call: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) -> CInt?
    ) -> CInt {
        guard let file else { return SQLITE_IOERR }
        let base = of(file).pointee.calls
        let result = of(file).pointee.frames.flush { pass($0, $1, to: file, base) }
        guard result == SQLITE_OK else { return result }
        return call(file, base.pointee) ?? SQLITE_IOERR
    }

    /// At most ``HeldFrames/room`` or what SQLite gave at once, so it fits its type.
    private static func pass(
        _ bytes: UnsafeRawBufferPointer, _ offset: sqlite3_int64, to file: UnsafeMutablePointer<sqlite3_file>,
        _ base: UnsafePointer<sqlite3_io_methods>
    ) -> CInt {
        base.pointee.xWrite?(file, bytes.baseAddress, CInt(bytes.count), offset) ?? SQLITE_IOERR
    }
}
