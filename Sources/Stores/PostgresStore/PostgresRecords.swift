import PushModel

/// Records as rows.
enum PostgresRecords {
    /// Versions use all 64 bits, and PostgreSQL's integers have a sign: with the highest bit inverted they
    /// compare in the same order.
    static func signed(_ version: UInt64) -> Int64 { Int64(bitPattern: version ^ (1 << 63)) }
    static func unsigned(_ version: Int64) -> UInt64 { UInt64(bitPattern: version) ^ (1 << 63) }

    static func number(_ state: PushModel.Record.State) -> (Int, UnixTime) {
        switch state {
        case .live: (0, .distantPast)
        case .expired(let at): (1, at)
        case .tombstone: (2, .distantPast)
        }
    }

    /// `nil` unless each column holds what is written there, as ``RecordSQL/isSound(_:)`` has it; and for one
    /// that stands aside.
    static func record(_ rows: Rows, _ row: Int) -> StoredRecord? {
        guard let key = rows.identity(row, 0), let space = rows.name(row, 1), !Aside.holds(space),
            let owner = rows.identityIfAny(row, 2), let address = rows.identityIfAny(row, 3),
            let version = rows.integer(row, 4, in: .min ... .max), let stateAt = rows.moment(row, 6),
            let touchedAt = rows.moment(row, 7), let expiresAt = rows.moment(row, 8),
            let revision = rows.integer(row, 9, in: RowBounds.counts), let body = rows.blob(row, 10)
        else { return nil }
        let state: PushModel.Record.State
        switch rows.integer(row, 5, in: 0...2) {
        case 0: state = .live
        case 1: state = .expired(at: stateAt)
        case 2: state = .tombstone
        default: return nil
        }
        return StoredRecord(
            key: key, space: space, owner: owner, address: address, version: unsigned(version), state: state,
            touchedAt: touchedAt, expiresAt: expiresAt, revision: UInt64(revision), body: body)
    }

    /// How the record stands in the table, whatever its columns hold; `nil` when it is aside already.
    private static func sight(_ rows: Rows, _ row: Int) -> SeenRecord? {
        guard let key = rows.identity(row, 0), let revision = rows.integer(row, 9, in: .min ... .max),
            rows.name(row, 1).map(Aside.holds) != true
        else { return nil }
        return SeenRecord(key: key, revision: revision)
    }
}

// Reading them.
extension PostgresRecords {
    /// One statement for the keys of all calls that wait.
    ///
    /// - Parameter unreadable: records that cannot be read are added to it.
    static func find(
        _ jobs: [Job], _ session: PostgresSession, _ unreadable: inout [SeenRecord]
    ) throws(PostgresFault) -> [@Sendable () -> Void] {
        var wanted: Set<Digest16> = []
        for job in jobs {
            if case .find(let keys, _, _) = job.work { wanted.formUnion(keys) }
        }
        let rows = try session.run(
            [Query(RecordSQL.find) { $0.add(digests: wanted) }], commits: false)[0]
        var found: [Digest16: StoredRecord] = [:]
        for row in 0..<rows.count {
            if let record = record(rows, row) {
                found[record.key] = record
            } else if let seen = sight(rows, row) {
                unreadable.append(seen)
            }
        }
        return jobs.compactMap { job in
            guard case .find(let keys, let now, let answer) = job.work else { return nil }
            let records = keys.map { key in found[key].flatMap { $0.expiresAt > now ? $0 : nil } }
            return { answer(records) }
        }
    }

    /// Rows that cannot be read are skipped and do not count in the limit: a short page is the last.
    ///
    /// - Parameter atOnce: how many of those are told.
    static func page(
        _ index: StoredIndex, after: UInt64, limit: Int, atOnce: Int, now: UnixTime,
        _ session: PostgresSession
    ) throws(PostgresFault) -> (page: [StoredRecord], unreadable: [SeenRecord]) {
        let statement =
            switch index {
            case .space: RecordSQL.pageSpace
            case .owner: RecordSQL.pageOwner
            case .address: RecordSQL.pageAddress
            case .expired: RecordSQL.pageExpired
            }
        var page: [StoredRecord] = []
        var unreadable: [SeenRecord] = []
        var last = if case .expired = index { signed(after) } else { Int64(clamping: after) }
        // Of the column by which the page is ordered.
        let place: Int32 = if case .expired = index { 4 } else { 9 }
        // Ends: each round reads on behind the last row, or is the last.
        while page.count < limit {
            let wanted = limit - page.count
            let query = Query(statement) { query in
                switch index {
                case .space(let space): query.add(space)
                case .owner(let digest), .address(let digest), .expired(let digest, _): query.add(digest)
                }
                query.add(last)
                if case .expired(_, let time) = index { query.add(time) }
                query.add(now)
                query.add(Int64(wanted))
            }
            let rows = try session.run([query], commits: false)[0]
            for row in 0..<rows.count {
                if let record = record(rows, row) {
                    page.append(record)
                } else if unreadable.count < atOnce, let seen = sight(rows, row) {
                    unreadable.append(seen)
                }
                last = try rows.int(row, place)
            }
            if rows.count < wanted { break }
        }
        return (page, unreadable)
    }

    /// Sets records aside that still stand as they were read; how many there were, and how many stand aside.
    static func setAside(
        _ records: [SeenRecord], ahead: Int64, _ session: PostgresSession
    ) throws(PostgresFault) -> (moved: Int, standing: Int) {
        guard !records.isEmpty else {
            let rows = try session.run([Query(RecordSQL.countAside)], commits: false)[0]
            return (0, Int(try rows.int(0, 0)))
        }
        let move = Query(RecordSQL.setAside) { query in
            query.add(digests: records.map(\.key))
            query.add(int64s: records.map(\.revision))
            query.add(Aside.prefix)
            query.add(ahead)
        }
        // As each caller that changes records does, so that two never wait for each other. What stands
        // between two ends of a pipeline is one transaction.
        let rows = try session.run(
            [Query(RecordSQL.lockRecords), move, Query(RecordSQL.countAside)], commits: true)
        return (rows[1].changed, Int(try rows[2].int(0, 0)))
    }

    static func tally(
        _ owners: [Digest16], weighing: Bool, _ session: PostgresSession
    ) throws(PostgresFault) -> [RecordTally] {
        let statement = weighing ? RecordSQL.tally : RecordSQL.count
        let rows = try session.run([Query(statement) { $0.add(digests: owners) }], commits: false)[0]
        var tallies: [RecordTally] = []
        for row in 0..<rows.count {
            tallies.append(
                RecordTally(records: Int(try rows.int(row, 0)), bytes: Int(try rows.int(row, 1))))
        }
        return tallies
    }
}
