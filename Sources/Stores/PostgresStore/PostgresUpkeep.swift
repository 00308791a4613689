package import PushModel

// Reading all rows, and filling, for those who move a store or change its keys.
extension PostgresStore: StoredRows {
    package func records(after key: Digest16?, limit: Int) async throws(StoreError) -> [StoredRecord] {
        try await core.single(.bulk) { session throws(PostgresFault) in
            let query = Query(UpkeepSQL.records) { query in
                // No digest is all zeros.
                query.add(key ?? Digest16(high: 0, low: 0))
                query.add(Int64(limit))
            }
            let rows = try session.run([query], commits: false)[0]
            var records: [StoredRecord] = []
            for row in 0..<rows.count { records.append(try PostgresRecords.record(rows, row)) }
            return records
        }
    }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> (pushes: [StoredOwed], next: StoredPlace?) {
        try await core.single(.bulk) { session throws(PostgresFault) in
            let query = Query(UpkeepSQL.pushes) { query in
                query.add(Self.key(place))
                query.add(Int64(limit))
            }
            let rows = try session.run([query], commits: false)[0]
            var pushes: [StoredOwed] = []
            for row in 0..<rows.count { pushes.append(try Self.owed(rows, row)) }
            return (pushes, pushes.last?.push.id.value.bytes)
        }
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> (marks: [StoredMark], next: StoredPlace?) {
        try await core.single(.bulk) { session throws(PostgresFault) in
            let query = Query(UpkeepSQL.marks) { query in
                query.add(Self.key(place))
                query.add(Int64(limit))
            }
            let rows = try session.run([query], commits: false)[0]
            var marks: [StoredMark] = []
            for row in 0..<rows.count {
                let minute = try rows.int(row, 2)
                marks.append(
                    StoredMark(
                        mark: try rows.digest(row, 0), id: PushID(try rows.digest(row, 1)),
                        first: OutcomeKind(rawValue: UInt8(truncatingIfNeeded: try rows.int(row, 3))),
                        endedAt: UnixTime(milliseconds: minute * 60_000)))
            }
            return (marks, marks.last?.mark.bytes)
        }
    }

    package func settings(_ prefix: String) async throws(StoreError) -> [String: [UInt8]] {
        try await core.single(.read) { session throws(PostgresFault) in
            try PostgresSettings.all(prefix, session)
        }
    }

    package func lastRevision() async throws(StoreError) -> UInt64 {
        try await core.single(.read) { session throws(PostgresFault) in
            let rows = try session.run([Query(UpkeepSQL.lastRevision)], commits: false)[0]
            guard rows.count == 1 else { throw .store(StoreError(.corrupt)) }
            return UInt64(clamping: try rows.int(0, 0))
        }
    }

    private static func key(_ place: StoredPlace) -> Digest16 {
        Digest16(place) ?? Digest16(high: 0, low: 0)
    }

    private static func owed(_ rows: Rows, _ row: Int) throws(PostgresFault) -> StoredOwed {
        let id = PushID(try rows.digest(row, 0))
        guard let level = PushClass(rawValue: UInt8(truncatingIfNeeded: try rows.int(row, 2))) else {
            throw .store(StoreError(.corrupt))
        }
        let push = StoredPush(
            row: PostgresAccepting.row(of: id), id: id, lane: rows.text(row, 1), pushClass: level,
            origin: try rows.digest(row, 3), record: try rows.digestIfAny(row, 4),
            touchedAt: try rows.time(row, 5), address: try rows.digestIfAny(row, 14),
            notBefore: try rows.time(row, 6), custodyEnds: try rows.time(row, 7),
            attempt: Int(try rows.int(row, 8)),
            epoch: try rows.int(row, 9), parked: rows.bool(row, 10), mark: try rows.digestIfAny(row, 11),
            sealed: rows.bytes(row, 13))
        let first = rows.isNull(row, 12) ? 0 : try rows.int(row, 12)
        return StoredOwed(push: push, first: OutcomeKind(rawValue: UInt8(truncatingIfNeeded: first)))
    }
}

extension PostgresStore: StoreNotes {
    package var owner: OwnerID { OwnerID(core.owner) }

    package func livingOwners() async throws(StoreError) -> [OwnerID] {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            try core.owners.living(session)
        }
    }

    package func put(setting name: String, to value: [UInt8]?) async throws(StoreError) {
        try await core.single(.bulk) { session throws(PostgresFault) in
            _ = try session.run([PostgresSettings.putting(name, value)], commits: true)
        }
    }
}

extension PostgresStore: StoreFilling {
    package func fill(_ page: StoredPage, noting name: String, _ value: [UInt8]) async throws(StoreError) {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            // What stands between two ends of a pipeline is one transaction.
            _ = try session.run(
                [
                    PostgresFilling(owner: core.owner, limits: core.limits).filling(page),
                    PostgresSettings.putting(name, value)
                ], commits: true)
            guard case .pushes(let pushes) = page else { return }
            // Told to the others when the lease is given up.
            for owed in pushes {
                core.counts.add(owed.push.lane, rows: 1, bytes: owed.push.sealed.count)
            }
        }
    }

    package func bar(_ isBarred: Bool) async throws(StoreError) {
        let statements = isBarred ? UpkeepSQL.bar : UpkeepSQL.unbar
        try await core.single(.bulk) { session throws(PostgresFault) in
            // What stands between two ends of a pipeline is one transaction.
            _ = try session.run(statements.map { Query($0) }, commits: true)
        }
    }
}

extension PostgresStore: StoreResealing {
    package func reseal(_ rows: [Resealed]) async throws(StoreError) -> Int {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            let results = try session.run(
                [
                    // As each caller that changes records does, so that two never wait for each other.
                    Query(RecordSQL.lockRecords), Self.resealingRecords(rows), Self.resealingPushes(rows)
                ], commits: true)
            // What the older key had sealed is forgotten like everything that was deleted.
            core.counts.noteDeletedPushes()
            core.counts.noteDeletedRecords()
            return Int(try results[1].int(0, 0) + results[2].int(0, 0))
        }
    }

    private static func resealingRecords(_ rows: [Resealed]) -> Query {
        var keys: [Digest16] = []
        var revisions: [Int64] = []
        var bodies: [[UInt8]] = []
        for case .record(let key, let revision, let body) in rows {
            keys.append(key)
            revisions.append(Int64(clamping: revision))
            bodies.append(body)
        }
        return Query(UpkeepSQL.resealRecords) { query in
            query.add(digests: keys)
            query.add(int64s: revisions)
            query.add(blobs: bodies)
        }
    }

    private static func resealingPushes(_ rows: [Resealed]) -> Query {
        var ids: [Digest16] = []
        var sealed: [[UInt8]] = []
        for case .push(_, let id, let bytes) in rows {
            ids.append(id.value)
            sealed.append(bytes)
        }
        return Query(UpkeepSQL.resealPushes) { query in
            query.add(digests: ids)
            query.add(blobs: sealed)
        }
    }
}

/// Rows of another store, as statements take them.
private struct PostgresFilling {
    let owner: Digest16
    let limits: PostgresLimits

    func filling(_ page: StoredPage) -> Query {
        switch page {
        case .records(let records): fillingRecords(records)
        case .pushes(let pushes): fillingPushes(pushes)
        case .marks(let marks): fillingMarks(marks)
        case .lastRevision(let revision):
            Query(UpkeepSQL.raiseRevision) { $0.add(Int64(clamping: revision)) }
        }
    }

    private func fillingRecords(_ records: [StoredRecord]) -> Query {
        let states = records.map { PostgresRecords.number($0.state) }
        return Query(UpkeepSQL.fillRecords) { query in
            query.add(digests: records.map(\.key))
            query.add(texts: records.map(\.space))
            query.add(optionalDigests: records.map(\.owner))
            query.add(optionalDigests: records.map(\.address))
            query.add(int64s: records.map { PostgresRecords.signed($0.version) })
            query.add(int16s: states.map(\.0))
            query.add(times: states.map(\.1))
            query.add(times: records.map(\.touchedAt))
            query.add(times: records.map(\.expiresAt))
            query.add(int64s: records.map { Int64(clamping: $0.revision) })
            query.add(blobs: records.map(\.body))
        }
    }

    private func fillingPushes(_ pushes: [StoredOwed]) -> Query {
        Query(UpkeepSQL.fillPushes) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(digests: pushes.map(\.push.id.value))
            query.add(texts: pushes.map(\.push.lane))
            query.add(int16s: pushes.map { Int($0.push.pushClass.rawValue) })
            query.add(digests: pushes.map(\.push.origin))
            query.add(optionalDigests: pushes.map(\.push.record))
            query.add(times: pushes.map(\.push.touchedAt))
            query.add(times: pushes.map(\.push.notBefore))
            query.add(times: pushes.map(\.push.custodyEnds))
            query.add(int32s: pushes.map(\.push.attempt))
            query.add(int64s: pushes.map(\.push.epoch))
            query.add(optionalDigests: pushes.map(\.push.mark))
            query.add(int16s: pushes.map { Int($0.first?.rawValue ?? 0) })
            query.add(blobs: pushes.map(\.push.sealed))
            query.add(optionalDigests: pushes.map(\.push.address))
        }
    }

    private func fillingMarks(_ marks: [StoredMark]) -> Query {
        Query(UpkeepSQL.fillMarks) { query in
            query.add(digests: marks.map(\.mark))
            query.add(digests: marks.map(\.id.value))
            query.add(int32s: marks.map { Int($0.endedAt.milliseconds / 60_000) })
            query.add(int16s: marks.map { Int($0.first?.rawValue ?? 0) })
        }
    }
}
