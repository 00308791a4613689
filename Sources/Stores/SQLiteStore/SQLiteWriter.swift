import GRDB
import PushModel

/// What the writing connection knows beside the file: counters, the mark index, the next row number.
///
/// Used on GRDB's writer queue. Its memory follows the transaction: `undone` reverts what a failed one did.
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
        /// Pushes that could not be read and were put aside since the journal was told.
        var unreadable = 0

        /// Counts a push that stands in the next row.
        mutating func count(_ push: StoredPush) {
            nextRow += 1
            rows += 1
            bytes += push.sealed.count
            owedByApp.add(push.lane, rows: 1, bytes: push.sealed.count)
            if push.parked { parked[push.lane, default: 0] += 1 }
        }

        /// Stops counting a row.
        mutating func forget(_ lane: String, _ size: Int) {
            rows -= 1
            bytes -= size
            owedByApp.add(lane, rows: -1, bytes: -size)
        }
    }

    let owner: Digest16
    let limits: SQLiteLimits
    var frequent = FrequentRows()
    var memory = Memory()
    var marks: UndoableMarks
    var unparked = UnparkedRows()
    var recentChanges = RecentChanges()
    /// Pushes that went with their registrations in this transaction, and stood as in memory.
    var ended: [PushID] = []
    /// As many as a push has.
    let digests = BoundDigests(places: 6)
    var insertion = KnownStatement(SQLiteWriter.insertion)
    private var saved = Memory()
    var marksPurgedAt = UnixTime.distantPast
    /// Blobs up to this one were looked at by the last purge; it went on from there, or begins anew.
    var marksLookedAt: Int64 = 0
    /// When the file was opened.
    private(set) var openedAt = UnixTime.distantPast

    init(owner: Digest16, limits: SQLiteLimits) {
        self.owner = owner
        self.limits = limits
        marks = UndoableMarks(limits: limits)
    }

    func begin() {
        saved = memory
        marks.keep()
        unparked.keep()
        ended.removeAll()
    }

    /// - Returns: pushes that went with their registrations, and stood as in memory.
    func committed() -> [PushID] {
        marks.keep()
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
        Moment(memory: memory, marks: marks.changes, unparked: unparked.changes, ended: ended.count)
    }

    /// Takes back what was done since, as a savepoint does in the file.
    func undo(to moment: Moment) {
        memory = moment.memory
        unparked.undo(to: moment.unparked)
        ended.removeLast(ended.count - moment.ended)
        marks.undo(to: moment.marks)
    }

    func insertMark(_ mark: Digest16, row: Int64, now: UnixTime) {
        marks.insert(mark, .owed(row: row), now: now)
    }

    func moveMark(_ mark: Digest16, to place: MarkIndex.Place?, now: UnixTime) {
        marks.move(mark, to: place, now: now)
    }

    /// Reads the counters and the marks of the last minutes from the file, once at opening.
    func load(_ db: Database, now: UnixTime) throws {
        openedAt = now
        if try !count(db) {
            var sql = try SQL(
                db,
                SQLiteSoundness.putAside
                    + " WHERE NOT (\(SQLiteSoundness.push)) AND NOT \(SQLiteSoundness.isAside)")
            bindAside(&sql)
            try sql.run()
            memory.unreadable += sql.changed
            _ = try count(db)
        }
        memory.nextRow = try Self.highest(db, Self.lastRow) + 1
        memory.nextBlob = try Self.highest(db, Self.lastBlob) + 1
        let given = try Self.highest(db, Self.lastReserved)
        memory.revision = max(try Self.highest(db, Self.lastRevision), given)
        memory.revisionsReserved = memory.revision
        memory.takeOverCursor = 0
        memory.takeOverEnd = memory.nextRow
        try loadMarks(db, now: now)
    }

    // Numbers that cannot be ours do not count: the next number must be free, and numbers must not run out.

    private static let counts = "BETWEEN 0 AND \(RowBounds.counted.upperBound)"
    static let lastRow = "SELECT coalesce(max(seq), 0) FROM outbox WHERE seq \(counts)"
    private static let lastBlob =
        "SELECT coalesce(max(seq), 0) FROM marks WHERE seq BETWEEN 0 AND \(MarkIndex.lastBlob / 2)"
    static let lastRevision = """
        SELECT coalesce(max(revision), 0) FROM records
        WHERE typeof(revision) = 'integer' AND revision \(counts)
        """
    static let lastReserved = """
        SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM settings
        WHERE name = 'revisions' AND CAST(value AS INTEGER) \(counts)
        """

    /// Counts what is owed; false when there are rows that cannot be read.
    private func count(_ db: Database) throws -> Bool {
        (memory.rows, memory.bytes, memory.parked, memory.owedByApp) = (0, 0, [:], OwedByApp())
        var isSound = true
        let counts = try SQL(
            db,
            """
            SELECT lane, parked, (\(SQLiteSoundness.push)) OR \(SQLiteSoundness.isAside), count(*),
            sum(length(sealed)) FROM outbox GROUP BY 1, 2, 3
            """)
        while try counts.step() {
            let (lane, rows, bytes) = (counts.text(0), Int(counts.int(3)), Int(counts.int(4)))
            if counts.int(2) == 0 { isSound = false }
            memory.rows += rows
            memory.bytes += bytes
            memory.owedByApp.add(lane, rows: rows, bytes: bytes)
            if counts.int(1) == 1 { memory.parked[lane, default: 0] += rows }
        }
        counts.finish()
        return isSound
    }

    static func highest(_ db: Database, _ text: String) throws -> Int64 {
        let query = try SQL(db, text)
        defer { query.finish() }
        return try query.step() ? query.int(0) : 0
    }

    private func loadMarks(_ db: Database, now: UnixTime) throws {
        // Their content and time are unknown.
        let unreadable = try SQL(
            db,
            """
            DELETE FROM marks WHERE typeof(made_at) <> 'integer' OR typeof(entries) <> 'blob'
            OR seq NOT BETWEEN 1 AND \(MarkIndex.lastBlob)
            """)
        try unreadable.run()
        let bound = limits.marksPerGeneration * (limits.markGenerations - 1)
        var blobs = try SQL(db, "SELECT seq, entries FROM marks WHERE made_at >= ? ORDER BY seq DESC")
        blobs.bind(now - limits.markSpan)
        var left = bound
        while left > 0, try blobs.step() {
            let blob = blobs.int(0)
            blobs.withBytes(1) { bytes in
                for entry in 0..<min(bytes.count / MarkBlob.entryBytes, MarkBlob.mostEntries) {
                    guard let mark = MarkBlob.mark(entry, of: bytes) else { continue }
                    marks.load(mark, .settled(blob: blob), now: now)
                    left -= 1
                }
            }
        }
        blobs.finish()
        var owed = try SQL(
            db, "SELECT seq, mark FROM outbox WHERE mark IS NOT NULL ORDER BY seq DESC LIMIT ?")
        owed.bind(bound)
        while try owed.step() {
            guard let mark = owed.digest(1), let row = owed.integer(0, in: RowBounds.counts) else { continue }
            marks.load(mark, .owed(row: row), now: now)
        }
        owed.finish()
    }
}

/// One batch's settled marks: n × (mark 16 ‖ push id 16 ‖ first outcome 1).
enum MarkBlob {
    static let entryBytes = 33
    /// Of a blob, no more are looked at; a batch has a thousand.
    static let mostEntries = 16_384

    static func append(_ mark: Digest16, _ id: PushID, _ first: OutcomeKind?, to blob: inout [UInt8]) {
        let (id, mark) = (id.value, mark)
        withUnsafeBytes(
            of: (mark.high.bigEndian, mark.low.bigEndian, id.high.bigEndian, id.low.bigEndian)
        ) { blob.append(contentsOf: $0) }
        blob.append(first?.rawValue ?? 0)
    }

    /// The mark of one entry.
    static func mark(_ entry: Int, of bytes: UnsafeRawBufferPointer) -> Digest16? {
        let start = entry * entryBytes
        guard start + entryBytes <= bytes.count else { return nil }
        return Digest16(UnsafeRawBufferPointer(rebasing: bytes[start..<start + 16]))
    }

    /// The push and outcome of a mark; of several entries, the last counts.
    static func read(
        _ mark: Digest16, of bytes: UnsafeRawBufferPointer
    ) -> (id: PushID, first: OutcomeKind?)? {
        for entry in (0..<min(bytes.count / entryBytes, mostEntries)).reversed()
        where self.mark(entry, of: bytes) == mark {
            return read(entry, of: bytes)
        }
        return nil
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
