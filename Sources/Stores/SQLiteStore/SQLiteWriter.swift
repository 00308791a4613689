import GRDB
import PushModel

/// What the writing connection knows beside the file: counters, the mark index, the next row number.
///
/// Lives on GRDB's writer queue. Its memory follows the transaction: `undone` takes back what a failed one
/// did.
final class SQLiteWriter {
    struct Memory {
        var nextRow: Int64 = 1
        var nextBlob: Int64 = 1
        var revision: Int64 = 0
        /// Revisions up to this one may be given; written ahead, so that none is given twice after a restart.
        var revisionsReserved: Int64 = 0
        /// Rows up to this number may belong to dead owners; `nil` once all were looked at.
        var takeOverCursor: Int64?
        var takeOverEnd: Int64 = 0
        /// Where the last claim of a lane and class ended, so that the next begins with other origins.
        var turns: [String: Digest16] = [:]
        var rows = 0
        var bytes = 0
        var parked: [String: Int] = [:]
        var owedByApp = OwedByApp()
    }

    let owner: Digest16
    let limits: SQLiteLimits
    var memory = Memory()
    var marks: MarkIndex
    var unparked = UnparkedRows()
    var recentEndings = RecentEndings()
    /// Pushes that went with their registrations in this transaction, and stood as in memory.
    var ended: [PushID] = []
    /// Undoes of the mark index, newest last.
    private var markUndo: [(Digest16, MarkIndex.Place?)] = []
    private var saved = Memory()
    var marksPurgedAt = UnixTime.distantPast
    /// Blobs up to this one were looked at by the last purge; it went on from there, or begins anew.
    var marksLookedAt: Int64 = 0

    init(owner: Digest16, limits: SQLiteLimits) {
        self.owner = owner
        self.limits = limits
        marks = MarkIndex(limits: limits)
    }

    func begin() {
        saved = memory
        markUndo.removeAll(keepingCapacity: true)
        unparked.keep()
        ended.removeAll()
    }

    /// - Returns: pushes that went with their registrations, and stood as in memory.
    func committed() -> [PushID] {
        markUndo.removeAll(keepingCapacity: true)
        unparked.keep()
        return ended
    }

    func undone() { undo(to: Moment(memory: saved, marks: 0, unparked: 0, ended: 0)) }

    /// How the memory stands between two operations of one transaction.
    struct Moment {
        fileprivate let memory: Memory
        fileprivate let marks: Int
        fileprivate let unparked: Int
        fileprivate let ended: Int
    }

    var moment: Moment {
        Moment(memory: memory, marks: markUndo.count, unparked: unparked.changes, ended: ended.count)
    }

    /// Takes back what was done since, as a savepoint does in the file.
    func undo(to moment: Moment) {
        memory = moment.memory
        unparked.undo(to: moment.unparked)
        ended.removeLast(ended.count - moment.ended)
        while markUndo.count > moment.marks, let (mark, place) = markUndo.popLast() {
            marks.move(mark, to: place)
        }
    }

    func insertMark(_ mark: Digest16, row: Int64, now: UnixTime) {
        markUndo.append((mark, marks.place(of: mark, now: now)))
        marks.insert(mark, .owed(row: row), now: now)
    }

    func moveMark(_ mark: Digest16, to place: MarkIndex.Place?, now: UnixTime) {
        markUndo.append((mark, marks.place(of: mark, now: now)))
        marks.move(mark, to: place)
    }

    /// Reads the counters and the marks of the last minutes from the file, once at opening.
    func load(_ db: Database, now: UnixTime) throws {
        let counts = try SQL(
            db, "SELECT lane, parked, count(*), sum(length(sealed)) FROM outbox GROUP BY lane, parked")
        while try counts.step() {
            memory.rows += Int(counts.int(2))
            memory.bytes += Int(counts.int(3))
            memory.owedByApp.add(counts.text(0), rows: Int(counts.int(2)), bytes: Int(counts.int(3)))
            if counts.int(1) == 1 { memory.parked[counts.text(0), default: 0] += Int(counts.int(2)) }
        }
        counts.finish()
        memory.nextRow = try Self.highest(db, "SELECT coalesce(max(seq), 0) FROM outbox") + 1
        memory.nextBlob = try Self.highest(db, "SELECT coalesce(max(seq), 0) FROM marks") + 1
        let given = try Self.highest(
            db, "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM settings WHERE name = 'revisions'")
        memory.revision = max(try Self.highest(db, "SELECT coalesce(max(revision), 0) FROM records"), given)
        memory.revisionsReserved = memory.revision
        memory.takeOverCursor = 0
        memory.takeOverEnd = memory.nextRow
        try loadMarks(db, now: now)
    }

    private static func highest(_ db: Database, _ text: String) throws -> Int64 {
        let query = try SQL(db, text)
        defer { query.finish() }
        return try query.step() ? query.int(0) : 0
    }

    private func loadMarks(_ db: Database, now: UnixTime) throws {
        let bound = limits.marksPerGeneration * (limits.markGenerations - 1)
        var blobs = try SQL(db, "SELECT seq, entries FROM marks WHERE made_at >= ? ORDER BY seq DESC")
        blobs.bind(now - limits.markSpan)
        var left = bound
        while left > 0, try blobs.step() {
            let blob = blobs.int(0)
            blobs.withBytes(1) { bytes in
                for entry in 0..<bytes.count / MarkBlob.entryBytes {
                    let start = entry * MarkBlob.entryBytes
                    guard let mark = Digest16(UnsafeRawBufferPointer(rebasing: bytes[start..<start + 16]))
                    else { continue }
                    marks.insert(mark, .settled(blob: blob, entry: entry), now: now)
                    left -= 1
                }
            }
        }
        blobs.finish()
        var owed = try SQL(
            db, "SELECT seq, mark FROM outbox WHERE mark IS NOT NULL ORDER BY seq DESC LIMIT ?")
        owed.bind(bound)
        while try owed.step() {
            guard let mark = owed.withBytes(1, { Digest16($0) }) else { continue }
            marks.insert(mark, .owed(row: owed.int(0)), now: now)
        }
        owed.finish()
    }
}

/// One batch's settled marks: n × (mark 16 ‖ push id 16 ‖ first outcome 1).
enum MarkBlob {
    static let entryBytes = 33

    static func append(_ mark: Digest16, _ id: PushID, _ first: OutcomeKind?, to blob: inout [UInt8]) {
        blob += mark.bytes
        blob += id.value.bytes
        blob.append(first?.rawValue ?? 0)
    }

    /// The push and outcome of one entry.
    static func read(_ entry: Int, of bytes: UnsafeRawBufferPointer) -> (id: PushID, first: OutcomeKind?)? {
        let start = entry * entryBytes
        guard start + entryBytes <= bytes.count,
            let id = Digest16(UnsafeRawBufferPointer(rebasing: bytes[start + 16..<start + 32]))
        else {
            return nil
        }
        return (PushID(id), OutcomeKind(rawValue: bytes[start + 32]))
    }
}
