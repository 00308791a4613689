#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import GRDBSQLite
import PushModel
import SQLiteStore
import Synchronization

/// A layer below SQLite that knows of each file what was synced and what only written. It stands above the
/// relay's own (``BlankingFiles``), and leaves every file alone whose name has not its mark.
enum SimulatedDisk {
    /// Names of simulated files begin so.
    static let mark = "sealbell-simulated-"
    /// What a disk writes at once; a write can be torn between two of them.
    private static let sector = 512

    /// What a file was left as.
    struct Remains: Sendable {
        let path: String
        /// With everything that was written.
        let written: [UInt8]
        fileprivate let synced: [UInt8]
        fileprivate let pending: [Write]

        /// - Parameter random: a number of the range.
        func afterPowerLoss(_ random: (ClosedRange<Int>) -> Int) -> [UInt8] {
            var image = synced
            for write in pending {
                switch random(0...2) {
                case 0: continue
                case 1: write.apply(to: &image)
                default: write.apply(to: &image, first: random(0...write.bytes.count / SimulatedDisk.sector))
                }
            }
            return image
        }
    }

    fileprivate struct Write: Sendable {
        let offset: Int
        let bytes: [UInt8]
        /// The file becomes so long.
        var length: Int?

        func apply(to image: inout [UInt8], first sectors: Int? = nil) {
            if let length {
                if sectors == nil { image.resize(to: length) }
                return
            }
            let count = sectors.map { min($0 * SimulatedDisk.sector, bytes.count) } ?? bytes.count
            if image.count < offset + count { image.resize(to: offset + count) }
            image.replaceSubrange(offset..<offset + count, with: bytes[..<count])
        }
    }

    private struct File {
        let path: String
        var written: [UInt8]
        var synced: [UInt8]
        var pending: [Write] = []
    }

    private struct State {
        /// By the address of SQLite's own structure.
        var open: [UInt: File] = [:]
        /// Our tables of calls by those below, and the other way round.
        var tables: [UInt: UInt] = [:]
        var bases: [UInt: UInt] = [:]
    }

    private static let state = Mutex(State())

    /// - Throws: `.unavailable` when SQLite does not take it.
    static func install() throws(StoreError) {
        try BlankingFiles.install()
        guard isInstalled else { throw StoreError(.unavailable) }
    }

    private static let isInstalled: Bool = {
        guard let base, let ours = UnsafeMutablePointer<sqlite3_vfs>(bitPattern: own) else { return false }
        ours.initialize(to: base.pointee)
        ours.pointee.pNext = nil
        ours.pointee.zName = UnsafePointer(strdup("sealbell-simulated"))
        ours.pointee.xOpen = { SimulatedDisk.open($1, $2, $3, $4) }
        return sqlite3_vfs_register(ours, 1) == SQLITE_OK
    }()

    // Safety: SQLite neither changes nor frees a layer that is registered.
    nonisolated(unsafe) private static let base = sqlite3_vfs_find("sealbell")
    /// Lives as long as the process, as SQLite wants it.
    private static let own = UInt(bitPattern: UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1))

    // MARK: From outside

    /// What all files of that name and its suffixes hold now.
    static func freeze(_ path: String) -> [Remains] {
        state.withLock { state in
            state.open.values.filter { $0.path == path || $0.path.hasPrefix(path + "-") }
                .sorted { $0.path < $1.path }
                .map { Remains(path: $0.path, written: $0.written, synced: $0.synced, pending: $0.pending) }
        }
    }

    /// Makes a file what it is to be.
    static func restore(_ path: String, _ bytes: [UInt8]) {
        // Fails only where nothing can be written at all, and then the run says so.
        try? Data(bytes).write(to: URL(fileURLWithPath: path))
        // The index of the log is made anew from the log.
        try? FileManager.default.removeItem(atPath: path.replacing("-wal", with: "") + "-shm")
    }

    // MARK: SQLite's calls

    private static func open(
        _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: CInt,
        _ given: UnsafeMutablePointer<CInt>?
    ) -> CInt {
        guard let base, let open = base.pointee.xOpen else { return SQLITE_CANTOPEN }
        let result = open(base, name, file, flags, given)
        guard result == SQLITE_OK, let file, let calls = file.pointee.pMethods, let name else {
            return result
        }
        let path = String(cString: name)
        guard path.contains(mark), flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL) != 0 else { return result }
        // The same file may be open several times: they share what is known.
        let bytes = FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? []
        state.withLock { state in
            let known = state.open.values.first { $0.path == path }
            state.open[UInt(bitPattern: file)] = known ?? File(path: path, written: bytes, synced: bytes)
            file.pointee.pMethods = table(over: calls, &state)
        }
        return result
    }

    private static func table(
        over base: UnsafePointer<sqlite3_io_methods>, _ state: inout State
    ) -> UnsafePointer<sqlite3_io_methods>? {
        let address: UInt
        if let known = state.tables[UInt(bitPattern: base)] {
            address = known
        } else {
            let made = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            made.initialize(to: base.pointee)
            made.pointee.xWrite = { SimulatedDisk.write($0, $1, $2, $3) }
            made.pointee.xTruncate = { SimulatedDisk.truncate($0, $1) }
            made.pointee.xSync = { file, _ in SimulatedDisk.sync(file) }
            made.pointee.xClose = { SimulatedDisk.close($0) }
            address = UInt(bitPattern: made)
            state.tables[UInt(bitPattern: base)] = address
            state.bases[address] = UInt(bitPattern: base)
        }
        return UnsafePointer(bitPattern: address)
    }

    /// Notes a change of a file for everybody who has it open.
    private static func note(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ change: (inout File) -> Void
    ) {
        state.withLock { state in
            guard var known = state.open[UInt(bitPattern: file)] else { return }
            let sharing = state.open.compactMap { $0.value.path == known.path ? $0.key : nil }
            // Nobody else holds its bytes while they change: each copy of an array has a little more room
            // than it needs, so that copies of copies grew to megabytes, which the heap wipes.
            for address in sharing { state.open[address] = nil }
            change(&known)
            for address in sharing { state.open[address] = known }
        }
    }

    /// Calls the layer below with its own table in place: it finds its neighbours through the file.
    private static func below(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ call: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) -> CInt
    ) -> CInt {
        guard let file, let ours = file.pointee.pMethods else { return SQLITE_IOERR }
        let base = state.withLock { $0.bases[UInt(bitPattern: ours)] }
        guard let base, let calls = UnsafePointer<sqlite3_io_methods>(bitPattern: base) else {
            return SQLITE_IOERR
        }
        file.pointee.pMethods = calls
        defer { if file.pointee.pMethods != nil { file.pointee.pMethods = ours } }
        return call(file, calls.pointee)
    }

    private static func write(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ bytes: UnsafeRawPointer?, _ count: CInt,
        _ offset: sqlite3_int64
    ) -> CInt {
        let result = below(file) { $1.xWrite?($0, bytes, count, offset) ?? SQLITE_IOERR }
        guard let file, result == SQLITE_OK else { return result }
        let change = Write(
            offset: Int(offset), bytes: [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(count))))
        note(file) { known in
            change.apply(to: &known.written)
            known.pending.append(change)
        }
        return result
    }

    private static func truncate(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ length: sqlite3_int64
    ) -> CInt {
        let result = below(file) { $1.xTruncate?($0, length) ?? SQLITE_IOERR }
        guard let file, result == SQLITE_OK else { return result }
        let change = Write(offset: 0, bytes: [], length: Int(length))
        note(file) { known in
            change.apply(to: &known.written)
            known.pending.append(change)
        }
        return result
    }

    /// The disk is ours, so nothing need wait for a real one.
    private static func sync(_ file: UnsafeMutablePointer<sqlite3_file>?) -> CInt {
        guard let file else { return SQLITE_IOERR }
        note(file) { known in
            known.synced = known.written.withUnsafeBufferPointer { Array($0) }
            known.pending = []
        }
        return SQLITE_OK
    }

    private static func close(_ file: UnsafeMutablePointer<sqlite3_file>?) -> CInt {
        if let file { state.withLock { _ = $0.open.removeValue(forKey: UInt(bitPattern: file)) } }
        return below(file) { $1.xClose?($0) ?? SQLITE_IOERR }
    }
}

extension [UInt8] {
    fileprivate mutating func resize(to length: Int) {
        if length < count {
            removeLast(count - length)
        } else {
            self += [UInt8](repeating: 0, count: length - count)
        }
    }
}
