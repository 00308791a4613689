import GRDB
package import PushModel

extension SQLiteStore: StoredOutbox {
    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        try await queue.submit { try $0.accept(pushes, changes: changes, now: now, $1) }
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        // A push that is settled late is at worst sent again after a crash, as it would be anyway. A reply
        // may wait for feedback.
        try await queue.submit(.bulk, lazily: feedback.isEmpty) {
            try $0.settle(steps, feedback: feedback, now: now, $1)
        }
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await queue.submit(.bulk) { writer, db in try pushes.map { try writer.setAside($0, db) } }
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        try await queue.submit(.bulk) { try $0.claim(lane, due: due, limit: limit, classes: classes, $1) }
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await queue.submit { try $0.nextDue(lane, $1) }
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await queue.submit(.bulk) { try $0.endCustody(before: before, limit: limit, $1) }
    }
}

// Accepting and settling: the two statements that every push passes.
extension SQLiteWriter {
    /// Writes pushes and changes, all or none; repeats are named and not written.
    func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime, _ db: Database
    ) throws -> StoredAccepted {
        guard memory.rows + pushes.count <= limits.outboxRows else { throw StoreError(.full) }
        let bytes = pushes.reduce(0) { $0 + $1.sealed.count }
        guard memory.bytes + bytes <= limits.outboxBytes,
            memory.owedByApp.hasRoom(
                for: pushes, rows: limits.share.of(limits.outboxRows),
                bytes: limits.share.of(limits.outboxBytes))
        else { throw StoreError(.full) }
        if let refused = try makeAll(changes, now: now, db) { return .refused(index: refused) }
        // Looked up before any is inserted: items of one call are not compared with each other.
        let repeats = try pushes.map { try heldPush(of: $0.mark, now: now, db) }
        var admissions: [StoredAdmission] = []
        admissions.reserveCapacity(pushes.count)
        // In their places: a sequence of pairs copies each push once more.
        for index in pushes.indices {
            if let held = repeats[index] {
                admissions.append(.repeated(of: held.id, first: held.first))
            } else if try isGone(pushes[index].record, pushes[index].address, now: now, db) {
                admissions.append(.gone)
            } else {
                let row = try insert(pushes[index], now: now, db)
                admissions.append(.owed(row: row, epoch: pushes[index].epoch))
            }
        }
        return .committed(admissions)
    }

    /// Whether a push's registration has ended since the push was made.
    private func isGone(
        _ record: Digest16?, _ address: Digest16?, now: UnixTime, _ db: Database
    ) throws -> Bool {
        guard let record, recentChanges.mayHaveEnded(record, address, at: now) else { return false }
        return try !stands(record, address, db)
    }

    /// Makes the changes in order, judging each condition after the changes before it. Returns the index of
    /// the first that is refused; then none is made.
    private func makeAll(_ changes: [StoredChange], now: UnixTime, _ db: Database) throws -> Int? {
        guard !changes.isEmpty else { return nil }
        let before = memory
        var refused: Int?
        var isMade = false
        var changed: [ChangedRegistration] = []
        defer { if !isMade { memory = before } }
        try db.inSavepoint {
            for (index, change) in changes.enumerated() {
                guard try mayChange(change, now: now, db) else {
                    refused = index
                    return .rollback
                }
                if let made = try make(change, db) { changed.append(made) }
            }
            return .commit
        }
        isMade = refused == nil
        if isMade { try endOwed(changed, now: now, db) }
        return refused
    }

    /// Writes an owed push of ours; its row.
    ///
    /// - Parameter first: the outcome that its sender was told, where there was one.
    func insert(
        _ push: StoredPush, first: OutcomeKind? = nil, now: UnixTime, _ db: Database
    ) throws -> Int64 {
        let row = memory.nextRow
        do { try write(push, as: row, first: first, db) } catch let fault as SQLFault where fault.isTaken {
            // The place is taken by a row whose number was changed.
            let next = try Self.highest(db, Self.lastRow) + 1
            guard next != row else { throw fault }
            memory.nextRow = next
            return try insert(push, first: first, now: now, db)
        }
        memory.count(push)
        if !push.parked {
            let written = UnparkedRows.Written(
                id: push.id, epoch: push.epoch, lane: push.lane, bytes: push.sealed.count, first: first)
            unparked.set(row, UnparkedRows.Row(record: push.record, written: written))
        }
        if let mark = push.mark { insertMark(mark, row: row, now: now) }
        return row
    }

    static let insertion = """
        INSERT INTO outbox (seq, id, lane, class, origin, record, touched_at, not_before, custody_ends,
        attempt, owner, epoch, parked, mark, first, sealed, address)
        VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
        """

    private func write(_ push: StoredPush, as row: Int64, first: OutcomeKind?, _ db: Database) throws {
        var sql = try insertion.sql(db)
        sql.bind(row)
        sql.bind(push.id.value, at: digests[0])
        sql.bind(push.lane)
        sql.bind(Int(push.pushClass.rawValue))
        sql.bind(push.origin, at: digests[1])
        sql.bind(push.record, at: digests[2])
        sql.bind(push.touchedAt)
        sql.bind(push.notBefore)
        sql.bind(push.custodyEnds)
        sql.bind(push.attempt)
        sql.bind(owner, at: digests[3])
        sql.bind(push.epoch)
        sql.bind(push.parked ? 1 : 0)
        sql.bind(push.mark, at: digests[4])
        if let first { sql.bind(Int(first.rawValue)) } else { sql.skip() }
        // The row is copied once, into its page, and not for each value before that.
        try push.sealed.withUnsafeBytes { sealed in
            sql.bind(lent: sealed)
            sql.bind(push.address, at: digests[5])
            defer { sql.release() }
            try sql.run()
        }
    }

    /// The push that holds a mark, if one does.
    private func heldPush(
        of mark: Digest16?, now: UnixTime, _ db: Database
    ) throws -> (id: PushID, first: OutcomeKind?)? {
        guard let mark, let place = marks.place(of: mark, now: now) else { return nil }
        switch place {
        case .owed(let row):
            var sql = try SQL(db, "SELECT id, first, mark FROM outbox WHERE seq = ?")
            sql.bind(row)
            defer { sql.finish() }
            guard try sql.step(), sql.digest(2) == mark, let id = sql.digest(0) else { return nil }
            return (PushID(id), sql.outcome(1))
        case .settled(let blob):
            var sql = try SQL(db, "SELECT entries FROM marks WHERE seq = ?")
            sql.bind(blob)
            defer { sql.finish() }
            guard try sql.step() else { return nil }
            return sql.withBytes(0) { MarkBlob.read(mark, of: $0) }
        }
    }

    /// Settles; false where the row is not ours at that epoch. The batch's marks go into one blob.
    func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime, _ db: Database
    ) throws -> [Bool] {
        var blob: [UInt8] = []
        /// Rows that have ended and stand in the file still.
        var ended: [Int64] = []
        let results = try steps.map { step in
            if ends(step, blob: &blob, now: now) {
                ended.append(step.row)
                return true
            }
            // It may be about one of these.
            try delete(&ended, db)
            return try settle(step, blob: &blob, now: now, db)
        }
        try delete(&ended, db)
        if !blob.isEmpty {
            var sql = try SQL(db, "INSERT OR REPLACE INTO marks (seq, made_at, entries) VALUES (?,?,?)")
            sql.bind(memory.nextBlob)
            sql.bind(now)
            sql.bind(blob)
            try sql.run()
            memory.nextBlob += 1
        }
        var changed: [ChangedRegistration] = []
        for change in feedback where try mayChange(change, now: now, db) {
            if let made = try make(change, db) { changed.append(made) }
        }
        try endOwed(changed, now: now, db)
        try purgeMarks(now: now, db)
        return results
    }

    /// Ends a row that is as this process wrote it, without touching the file: nearly every push.
    ///
    /// - Returns: false, and nothing has changed, when it goes on, or has to be read first.
    private func ends(_ step: StoredSettlement, blob: inout [UInt8], now: UnixTime) -> Bool {
        switch step.step {
        case .settle, .withdraw: break
        case .park, .retry: return false
        }
        guard let written = unparked.take(step) else { return false }
        endMark(step, first: written.first ?? step.first, blob: &blob, now: now)
        forget(written.lane, written.bytes)
        return true
    }

    /// Deletes them, consecutive ones with one statement: pushes that came together mostly end together.
    private func delete(_ rows: inout [Int64], _ db: Database) throws {
        guard !rows.isEmpty else { return }
        rows.sort()
        var start = 0
        for index in rows.indices where index + 1 == rows.count || rows[index + 1] != rows[index] + 1 {
            var sql = try SQL(db, "DELETE FROM outbox WHERE seq BETWEEN ? AND ?")
            sql.bind(rows[start])
            sql.bind(rows[index])
            try sql.run()
            start = index + 1
        }
        rows.removeAll(keepingCapacity: true)
    }

    /// The mark of a push that has ended, and was withdrawn or not.
    private func endMark(
        _ step: StoredSettlement, first: OutcomeKind?, blob: inout [UInt8], now: UnixTime
    ) {
        guard let mark = step.mark else { return }
        guard case .settle = step.step else { return moveMark(mark, to: nil, now: now) }
        MarkBlob.append(mark, step.id, first, to: &blob)
        moveMark(mark, to: .settled(blob: memory.nextBlob), now: now)
    }

    private func settle(
        _ step: StoredSettlement, blob: inout [UInt8], now: UnixTime, _ db: Database
    ) throws -> Bool {
        var row = try SQL(
            db,
            """
            SELECT length(sealed), parked, lane, first, record FROM outbox
            WHERE seq=? AND id=? AND epoch=? AND owner=?
            """)
        row.bind(step.row)
        row.bind(step.id.value)
        row.bind(step.epoch)
        row.bind(owner)
        guard try row.step() else {
            row.finish()
            return false
        }
        let (size, wasParked) = (Int(row.int(0)), row.int(1) == 1)
        let lane = row.text(2)
        let first = row.outcome(3) ?? step.first
        let record = row.digest(4)
        row.finish()
        if case .retry(_, _, _, parked: false) = step.step {
            unparked.set(step.row, UnparkedRows.Row(record: record))
        } else {
            unparked.set(step.row, nil)
        }
        if wasParked { memory.parked[lane, default: 0] -= 1 }
        switch step.step {
        case .settle, .withdraw:
            endMark(step, first: first, blob: &blob, now: now)
            try remove(step.row, lane, size, db)
        case .park:
            var sql = try SQL(db, "UPDATE outbox SET parked = 1 WHERE seq = ? RETURNING lane")
            sql.bind(step.row)
            if try sql.step() { memory.parked[sql.text(0), default: 0] += 1 }
            sql.finish()
        case .retry(let notBefore, let attempt, let lane, let parked):
            var sql = try SQL(
                db, "UPDATE outbox SET not_before=?, attempt=?, lane=?, parked=?, first=? WHERE seq=?")
            sql.bind(notBefore)
            sql.bind(attempt)
            sql.bind(lane.description)
            sql.bind(parked ? 1 : 0)
            if let first { sql.bind(Int(first.rawValue)) } else { sql.skip() }
            sql.bind(step.row)
            try sql.run()
            if parked { memory.parked[lane.description, default: 0] += 1 }
        }
        return true
    }

    func setAside(_ push: StoredSettlement, _ db: Database) throws -> Bool {
        var row = try SQL(
            db, "SELECT parked, lane, mark FROM outbox WHERE seq=? AND id=? AND epoch=? AND owner=?")
        row.bind(push.row)
        row.bind(push.id.value)
        row.bind(push.epoch)
        row.bind(owner)
        guard try row.step() else {
            row.finish()
            return false
        }
        let (wasParked, lane) = (row.int(0) == 1, row.text(1))
        // In a broken row, any column may differ from what was written.
        let mark = row.digest(2)
        row.finish()
        if let mark, case .owed(push.row)? = marks.place(of: mark, now: marksPurgedAt) {
            moveMark(mark, to: nil, now: marksPurgedAt)
        }
        var sql = try SQL(
            db,
            """
            UPDATE outbox SET lane = ?, parked = 1, mark = NULL,
            custody_ends = \(SQLiteSoundness.earlier("custody_ends")) WHERE seq = ?
            """)
        sql.bind(Aside.text(lane))
        sql.bind(latestAside)
        sql.bind(latestAside)
        sql.bind(push.row)
        try sql.run()
        if wasParked { memory.parked[lane, default: 0] -= 1 }
        unparked.set(push.row, nil)
        memory.parked[Aside.text(lane), default: 0] += 1
        return true
    }

    func remove(_ row: Int64, _ lane: String, _ size: Int, _ db: Database) throws {
        var sql = try SQL(db, "DELETE FROM outbox WHERE seq = ?")
        sql.bind(row)
        try sql.run()
        forget(lane, size)
    }

    /// Counts a row no more.
    private func forget(_ lane: String, _ size: Int) { memory.forget(lane, size) }

    /// Blobs whose marks no longer count are deleted whole, oldest first, once a second and a few at a time.
    /// They are numbered as they were made, so only those that are deleted are read. Searching all of them by
    /// age delayed every commit by the time that it takes to read a minute of load.
    private func purgeMarks(now: UnixTime, _ db: Database) throws {
        guard now.since(marksPurgedAt) >= limits.purgeEvery || now < marksPurgedAt else { return }
        marksPurgedAt = now
        var look = try SQL(db, "SELECT seq, made_at FROM marks WHERE seq > ? ORDER BY seq LIMIT ?")
        look.bind(marksLookedAt)
        look.bind(limits.blobsPerPurge)
        let cutoff = marks.oldest(now: now)
        var (last, seen) = (marksLookedAt, 0)
        // Blobs with times of a clock that was since set back are skipped, and do not delay those after them.
        while try look.step(), look.time(1) < cutoff || look.time(1) > now {
            (last, seen) = (look.int(0), seen + 1)
        }
        look.finish()
        var sql = try SQL(db, "DELETE FROM marks WHERE seq > ? AND seq <= ? AND made_at < ?")
        sql.bind(marksLookedAt)
        sql.bind(last)
        sql.bind(cutoff)
        try sql.run()
        marksLookedAt = seen < limits.blobsPerPurge ? 0 : last
    }
}
