import GRDB
import PushModel

// What ends with a registration.
extension SQLiteWriter {
    static let parkedOfRecord = "SELECT seq FROM outbox WHERE parked = 1 AND record = ?"
    private static let owedRow =
        "SELECT id, lane, length(sealed), mark, parked, address, record FROM outbox WHERE seq = ?"

    /// Ends pushes that are owed to registrations that are no longer as they were when the pushes were made.
    ///
    /// Rows that a dead process left marked as in memory, and that nobody has taken over yet, are not among
    /// them: the process that claims them checks their registrations.
    func endOwed(_ changed: [ChangedRegistration], now: UnixTime, _ db: Database) throws {
        guard !changed.isEmpty else { return }
        recentChanges.note(changed, at: now)
        let keys = changed.filter(\.mayOwe).map(\.key)
        guard memory.rows > 0, !keys.isEmpty else { return }
        var rows = unparked.count > 0 ? unparked.rows(of: Set(keys)) : []
        if memory.parked.contains(where: { $0.value > 0 }) {
            for key in keys {
                var find = try SQL(db, Self.parkedOfRecord)
                find.bind(key)
                while try find.step() { rows.append(find.int(0)) }
                find.finish()
            }
        }
        for row in rows { try endUnlessStanding(row, now: now, db) }
    }

    private func endUnlessStanding(_ row: Int64, now: UnixTime, _ db: Database) throws {
        var find = try SQL(db, Self.owedRow)
        find.bind(row)
        guard try find.step() else { return find.finish() }
        let (id, lane, size) = (find.withBytes(0) { Digest16($0) }, find.text(1), Int(find.int(2)))
        let (mark, isParked) = (find.withBytes(3) { Digest16($0) }, find.int(4) == 1)
        let (address, record) = (find.withBytes(5) { Digest16($0) }, find.withBytes(6) { Digest16($0) })
        find.finish()
        guard let id, let record, try !stands(record, address, db) else { return }
        if let mark { moveMark(mark, to: nil, now: now) }
        if isParked { memory.parked[lane, default: 0] -= 1 } else { ended.append(PushID(id)) }
        unparked.set(row, nil)
        try remove(row, lane, size, db)
    }

    /// Whether the registration stands that a push was made from.
    ///
    /// - Parameter address: the one that it named then; `nil`: unknown.
    func stands(_ record: Digest16, _ address: Digest16?, _ db: Database) throws -> Bool {
        // A registration whose time has passed has not been ended by anybody.
        let found = try SQLiteRecords.find(record, now: UnixTime(milliseconds: .min), db)
        return found?.state == .live && (address == nil || address == found?.address)
    }
}
