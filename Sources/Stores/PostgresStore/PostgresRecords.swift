import PushModel

/// Records as rows.
enum PostgresRecords {
    /// Versions use all 64 bits, and PostgreSQL's integers have a sign: with the highest bit turned over they
    /// compare alike.
    static func signed(_ version: UInt64) -> Int64 { Int64(bitPattern: version ^ (1 << 63)) }
    static func unsigned(_ version: Int64) -> UInt64 { UInt64(bitPattern: version) ^ (1 << 63) }

    static func number(_ state: PushModel.Record.State) -> (Int, UnixTime) {
        switch state {
        case .live: (0, .distantPast)
        case .expired(let at): (1, at)
        case .tombstone: (2, .distantPast)
        }
    }

    /// - Throws: `.corrupt` when a column holds what we never write.
    static func record(_ rows: Rows, _ row: Int) throws(PostgresFault) -> StoredRecord {
        let state: PushModel.Record.State
        switch try rows.int(row, 5) {
        case 0: state = .live
        case 1: state = .expired(at: try rows.time(row, 6))
        case 2: state = .tombstone
        default: throw .store(StoreError(.corrupt))
        }
        return StoredRecord(
            key: try rows.digest(row, 0), space: rows.text(row, 1), owner: try rows.digestIfAny(row, 2),
            address: try rows.digestIfAny(row, 3), version: unsigned(try rows.int(row, 4)), state: state,
            touchedAt: try rows.time(row, 7), expiresAt: try rows.time(row, 8),
            revision: UInt64(bitPattern: try rows.int(row, 9)), body: rows.bytes(row, 10))
    }
}

// Reading them.
extension PostgresRecords {
    /// One statement for the keys of all calls that wait.
    static func find(_ jobs: [Job], _ session: PostgresSession) throws(PostgresFault)
        -> [@Sendable () -> Void]
    {
        var wanted: Set<Digest16> = []
        for job in jobs {
            if case .find(let keys, _, _) = job.work { wanted.formUnion(keys) }
        }
        let rows = try session.run(
            [Query(RecordSQL.find) { $0.add(digests: wanted) }], commits: false)[0]
        var found: [Digest16: StoredRecord] = [:]
        for row in 0..<rows.count {
            let record = try record(rows, row)
            found[record.key] = record
        }
        return jobs.compactMap { job in
            guard case .find(let keys, let now, let answer) = job.work else { return nil }
            let records = keys.map { key in found[key].flatMap { $0.expiresAt > now ? $0 : nil } }
            return { answer(records) }
        }
    }

    static func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime, _ session: PostgresSession
    ) throws(PostgresFault) -> [StoredRecord] {
        let statement =
            switch index {
            case .space: RecordSQL.pageSpace
            case .owner: RecordSQL.pageOwner
            case .address: RecordSQL.pageAddress
            }
        let query = Query(statement) { query in
            switch index {
            case .space(let space): query.add(space)
            case .owner(let digest), .address(let digest): query.add(digest)
            }
            query.add(Int64(clamping: after))
            query.add(now)
            query.add(Int64(limit))
        }
        let rows = try session.run([query], commits: false)[0]
        var records: [StoredRecord] = []
        for row in 0..<rows.count { records.append(try record(rows, row)) }
        return records
    }

    static func tally(
        _ owners: [Digest16], _ session: PostgresSession
    ) throws(PostgresFault) -> [RecordTally] {
        let rows = try session.run([Query(RecordSQL.tally) { $0.add(digests: owners) }], commits: false)[0]
        var tallies: [RecordTally] = []
        for row in 0..<rows.count {
            tallies.append(
                RecordTally(records: Int(try rows.int(row, 0)), bytes: Int(try rows.int(row, 1))))
        }
        return tallies
    }
}
