#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import CSQLite
import GRDBSQLite
package import PushModel
import Synchronization

/// SQLite's own file access, except that the database's pages are written without the content of their
/// ``PageGap``, and a transaction's frames go to the log in few writes (``HeldFrames``).
///
/// The log's bytes are left as they are, since its checksums cover every one; it is emptied instead
/// (``SQLiteStore/forgetNow()``).
package enum BlankingFiles {
    /// Makes this the file access of every database that the process opens from now on. Later calls do
    /// nothing.
    ///
    /// - Throws: `.unavailable` when SQLite does not take it.
    package static func install() throws(StoreError) {
        guard isInstalled else { throw StoreError(.unavailable) }
    }

    private static let isInstalled: Bool = {
        // Before anything else, or it changes nothing, which is no fault.
        _ = sealbell_sqlite_configure()
        guard let base, let ours = UnsafeMutablePointer<sqlite3_vfs>(bitPattern: own) else { return false }
        ours.initialize(to: base.pointee)
        ours.pointee.pNext = nil
        ours.pointee.szOsFile = CInt(OpenFile.place + MemoryLayout<OpenFile>.size)
        ours.pointee.zName = UnsafePointer(strdup("sealbell"))
        ours.pointee.xOpen = { BlankingFiles.open($1, $2, $3, $4) }
        return sqlite3_vfs_register(ours, 1) == SQLITE_OK
    }()

    // Safety: the default of the library, found before ours takes its place; SQLite never changes or frees
    // it.
    nonisolated(unsafe) static let base = sqlite3_vfs_find(nil)
    /// Lives as long as the process, as SQLite wants it.
    private static let own = UInt(bitPattern: UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1))

    /// For each table of calls that the base has, ours for a database and behind it ours for a log. There are
    /// a few in a process, by the kind of locks, and they live as long as it.
    private static let tables = Mutex<[UInt: UInt]>([:])

    private static func open(
        _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: CInt,
        _ given: UnsafeMutablePointer<CInt>?
    ) -> CInt {
        guard let base, let open = base.pointee.xOpen else { return SQLITE_CANTOPEN }
        let result = open(base, name, file, flags, given)
        let kinds = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL
        guard result == SQLITE_OK, flags & kinds != 0, let file, let calls = file.pointee.pMethods,
            let tables = tables(over: calls)
        else { return result }
        let isLog = flags & SQLITE_OPEN_WAL != 0
        let own = OpenFile.of(file)
        own.initialize(to: OpenFile(calls: calls))
        if isLog {
            guard own.pointee.belongs(to: sqlite3_database_file_object(name), file) else { return result }
        }
        file.pointee.pMethods = isLog ? tables + 1 : tables
        return result
    }

    private static func tables(
        over base: UnsafePointer<sqlite3_io_methods>
    ) -> UnsafePointer<sqlite3_io_methods>? {
        let address = tables.withLock { tables in
            if let known = tables[UInt(bitPattern: base)] { return known }
            let made = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 2)
            made.initialize(repeating: base.pointee, count: 2)
            made[0].xWrite = { BlankingFiles.write($0, $1, $2, $3) }
            made[0].xShmLock = { OpenFile.lock($0, $1, $2, $3) }
            OpenFile.answer(&made[1])
            tables[UInt(bitPattern: base)] = UInt(bitPattern: made)
            return UInt(bitPattern: made)
        }
        return UnsafePointer(bitPattern: address)
    }

    private static func write(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ bytes: UnsafeRawPointer?, _ count: CInt,
        _ offset: sqlite3_int64
    ) -> CInt {
        guard let file, let write = OpenFile.of(file).pointee.calls.pointee.xWrite else {
            return SQLITE_IOERR
        }
        let page = UnsafeRawBufferPointer(start: bytes, count: Int(count))
        guard let gap = PageGap.find(page, isFirst: offset == 0) else {
            return write(file, bytes, count, offset)
        }
        // SQLite lends the page and may go on reading it: a copy is blanked.
        return withUnsafeTemporaryAllocation(byteCount: page.count, alignment: 16) { copy in
            copy.copyMemory(from: page)
            wipe(UnsafeMutableRawBufferPointer(rebasing: copy[gap]))
            return write(file, copy.baseAddress, count, offset)
        }
    }
}
