import GRDB
package import PushModel

extension SQLiteStore: OwedLookup {
    /// How far a push's row may lie from where the stamp of its id says: rows stand in the order of commits,
    /// ids are minted just before, and a clock may have been set in between.
    private static let drift = Duration.seconds(60)
    /// Rows looked through at most: above 1,000 a second for all of the drift on both sides.
    private static let scanRows = 200_000
    /// The number of later ids in a row that show that the rows of the searched time are over, because a
    /// single changed id proves nothing.
    private static let strays = 16

    /// The row of an owed push, without its sealed column; `nil` when none is found. For an operator's
    /// question: there is no index over ids, since every push would pay for it.
    package func owed(_ id: PushID) async throws(StoreError) -> StoredPush? {
        do {
            return try await pool.read { db in
                let from = try Self.firstRow(notBefore: id.acceptedAt - Self.drift, db)
                var sql = try SQL(
                    db,
                    """
                    SELECT id, seq, lane, class, touched_at, not_before, custody_ends, attempt, epoch, parked
                    FROM outbox WHERE seq >= ? ORDER BY seq LIMIT ?
                    """)
                sql.bind(from)
                sql.bind(Self.scanRows)
                defer { sql.finish() }
                var later = 0
                while later < Self.strays, try sql.step() {
                    guard let found = sql.digest(0).map({ PushID($0) }) else { continue }
                    if found == id { return Self.push(id, sql) }
                    later = found.acceptedAt > id.acceptedAt + Self.drift ? later + 1 : 0
                }
                return nil
            }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    /// The push that has been owed longest: rows are numbered in the order of their commits. One that cannot
    /// be read is passed over.
    package func oldest() async throws(StoreError) -> PushID? {
        do {
            return try await pool.read { db in
                let sql = try SQL(db, "SELECT id FROM outbox ORDER BY seq")
                defer { sql.finish() }
                while try sql.step() { if let id = sql.digest(0) { return PushID(id) } }
                return nil
            }
        } catch {
            throw SQLFault.translate(error)
        }
    }

    /// `nil` for a row that cannot be read.
    private static func push(_ id: PushID, _ sql: SQL) -> StoredPush? {
        guard let row = sql.integer(1, in: RowBounds.counts), let lane = sql.name(2),
            let level = sql.integer(3, in: 0...255).flatMap({ PushClass(rawValue: UInt8($0)) }),
            let touchedAt = sql.moment(4), let notBefore = sql.moment(5), let custodyEnds = sql.moment(6),
            let attempt = sql.integer(7, in: RowBounds.attempts),
            let epoch = sql.integer(8, in: RowBounds.counts), let parked = sql.integer(9, in: 0...1)
        else { return nil }
        return StoredPush(
            row: row, id: id, lane: lane, pushClass: level, origin: Digest16(high: 0, low: 0),
            record: nil, touchedAt: touchedAt, notBefore: notBefore, custodyEnds: custodyEnds,
            attempt: Int(attempt), epoch: epoch, parked: parked == 1, mark: nil, sealed: [])
    }

    /// The first row whose id is not older, by halving: stamps rise with row numbers, nearly.
    private static func firstRow(notBefore time: UnixTime, _ db: Database) throws -> Int64 {
        // Whatever a row's number is: halving a span must not overflow.
        var low = max(0, try bound("SELECT coalesce(min(seq), 0) FROM outbox", db))
        var high = min(
            try bound("SELECT coalesce(max(seq), 0) FROM outbox", db), RowBounds.counts.upperBound)
        // Ends, because each round halves the span.
        while low < high {
            let middle = low + (high - low) / 2
            guard let (row, stamp) = try sight(from: middle, db), row < high else {
                high = middle
                continue
            }
            if stamp < time { low = row + 1 } else { high = middle }
        }
        return low
    }

    /// The first row from there on, and its time: the median of three, because a single changed id proves
    /// nothing.
    private static func sight(from row: Int64, _ db: Database) throws -> (row: Int64, stamp: UnixTime)? {
        var sql = try SQL(db, "SELECT seq, id FROM outbox WHERE seq >= ? ORDER BY seq LIMIT 3")
        sql.bind(row)
        defer { sql.finish() }
        var first: Int64?
        var stamps: [UnixTime] = []
        while try sql.step() {
            first = first ?? sql.int(0)
            if let id = sql.digest(1) { stamps.append(PushID(id).acceptedAt) }
        }
        guard let first, !stamps.isEmpty else { return nil }
        return (first, stamps.sorted()[stamps.count / 2])
    }

    private static func bound(_ text: String, _ db: Database) throws -> Int64 {
        let sql = try SQL(db, text)
        defer { sql.finish() }
        return try sql.step() ? sql.int(0) : 0
    }
}
