package import PushModel

// Reading all rows, and filling, for those who move a store or change its keys.
extension PostgresStore: StoredRows {
    package func records(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredRecord> {
        try await page(UpkeepSQL.records, after: place, limit, 0) { rows, row in
            PostgresRecords.record(rows, row)
        }
    }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredOwed> {
        try await page(UpkeepSQL.pushes, after: place, limit, 0, Self.owed)
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredMark> {
        try await page(UpkeepSQL.marks, after: place, limit, 0) { rows, row in
            guard let mark = rows.identity(row, 0), let id = rows.identity(row, 1),
                let minute = rows.integer(row, 2, in: 0...Int64(Int32.max))
            else { return nil }
            return StoredMark(
                mark: mark, id: PushID(id), first: rows.outcome(row, 3),
                endedAt: UnixTime(milliseconds: minute * 60_000))
        }
    }

    /// A page of a table whose first column is its key.
    private func page<Row: Sendable>(
        _ statement: Statement, after place: StoredPlace, _ limit: Int, _ key: Int32,
        _ read: @escaping @Sendable (Rows, Int) -> Row?
    ) async throws(StoreError) -> RowPage<Row> {
        try await core.single(.bulk) { session throws(PostgresFault) in
            let query = Query(statement) { query in
                query.add(Self.key(place))
                query.add(Int64(limit))
            }
            let rows = try session.run([query], commits: false)[0]
            var page = RowPage<Row>()
            for row in 0..<rows.count {
                let key = try rows.digest(row, key)
                page.next = key.bytes
                if let found = read(rows, row) {
                    page.rows.append(found)
                } else {
                    page.unreadable.append("key \(UUIDDigits.text(high: key.high, low: key.low))")
                }
            }
            return page
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

    /// No key is all zeros.
    private static func key(_ place: StoredPlace) -> Digest16 {
        Digest16(place.prefix(16) + Array(repeating: 0, count: max(0, 16 - place.count)))
            ?? Digest16(high: 0, low: 0)
    }

    private static func owed(_ rows: Rows, _ row: Int) -> StoredOwed? {
        guard let id = rows.identity(row, 0).map({ PushID($0) }), let lane = rows.name(row, 1),
            let level = rows.level(row, 2), let origin = rows.identity(row, 3),
            let record = rows.identityIfAny(row, 4), let touchedAt = rows.moment(row, 5),
            let notBefore = rows.moment(row, 6), let custodyEnds = rows.moment(row, 7),
            let attempt = rows.integer(row, 8, in: RowBounds.attempts),
            let epoch = rows.integer(row, 9, in: RowBounds.counts),
            let mark = rows.identityIfAny(row, 11), let sealed = rows.blob(row, 13),
            let address = rows.identityIfAny(row, 14)
        else { return nil }
        let push = StoredPush(
            row: PostgresAccepting.row(of: id), id: id, lane: lane, pushClass: level, origin: origin,
            record: record, touchedAt: touchedAt, address: address, notBefore: notBefore,
            custodyEnds: custodyEnds, attempt: Int(attempt), epoch: epoch, parked: rows.bool(row, 10),
            mark: mark, sealed: sealed)
        return StoredOwed(push: push, first: rows.outcome(row, 12))
    }
}

extension PostgresStore: StoreSettings {
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
                    Query(RecordSQL.lockRecords), Self.resealingRecords(rows),
                    Self.resealingPushes(rows)
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
