package import PushModel

extension SealedStore: Registry {
    package func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        guard !keys.isEmpty else { return [] }
        let rows = try await engine.find(keys.map(digests.digest), now: world.now())
        var found: [Record?] = []
        found.reserveCapacity(rows.count)
        for (key, row) in zip(keys, rows) {
            found.append(try row.flatMap { row throws(StoreError) in try open(row, asked: key) })
        }
        return found
    }

    /// A record that does not open is left out, and said in the journal; one that has expired has no names
    /// any more, and is left out too.
    package func page(
        _ index: RecordIndex, after revision: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        let stored: StoredIndex =
            switch index {
            case .space(let space): .space(space.text)
            case .owner(let key): .owner(digests.digest(key))
            case .address(let key): .address(digests.digest(key))
            }
        let rows = try await engine.page(stored, after: revision, limit: limit, now: world.now())
        var records: [Record] = []
        for row in rows { if let record = try open(row, asked: nil) { records.append(record) } }
        return records
    }

    package func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        guard !changes.isEmpty else { return .committed }
        return try await engine.apply(changes.map(stored), now: world.now())
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await engine.purge(before: before, limit: limit)
    }

    package func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int {
        try await engine.forget(owner: digests.digest(owner), limit: limit)
    }

    func stored(_ change: Change) -> StoredChange {
        switch change {
        case .put(let record, let condition): .put(seal(record), if: condition)
        case .expire(let key, let at, let condition): .expire(digests.digest(key), at: at, if: condition)
        case .expireStored(let digest, let at, let touched):
            .expire(digest, at: at, if: .touchedNotAfter(touched))
        case .expireAddress(let key, let at, let touched):
            .expireAddress(digests.digest(key), at: at, notTouchedAfter: touched)
        case .delete(let key, let condition): .delete(digests.digest(key), if: condition)
        }
    }

    private func seal(_ record: Record) -> StoredRecord {
        let key = digests.digest(record.key)
        let place = Self.place(record.key.space.text, key)
        let body = place.withUnsafeBytes { place in
            sealer.seal(atMost: StoredCodec.size(record), with: place) { StoredCodec.write(record, to: $0) }
        }
        return StoredRecord(
            key: key, space: record.key.space.text, owner: record.owner.map(digests.digest),
            address: record.address.map(digests.digest), version: record.version, state: record.state,
            touchedAt: record.touchedAt, expiresAt: record.expiresAt, revision: record.revision, body: body)
    }

    /// `nil` for a row whose bytes were changed; the next registration writes it anew.
    ///
    /// - Parameter key: by which it was asked for.
    private func open(_ row: StoredRecord, asked key: RecordKey?) throws(StoreError) -> Record? {
        if case .expired = row.state, row.body.isEmpty {
            return key.map { key in
                Record(
                    key: key, version: row.version, state: row.state, touchedAt: row.touchedAt,
                    expiresAt: row.expiresAt, revision: row.revision, body: Secret([]))
            }
        }
        let body: Secret
        do {
            let place = Self.place(row.space, row.key)
            let opened = place.withUnsafeBytes { place -> Result<Secret, Sealer.Fault> in
                do throws(Sealer.Fault) { return .success(try sealer.open(row.body, with: place)) } catch {
                    return .failure(error)
                }
            }
            body = try opened.get()
        } catch {
            if case .unknownKey = error { throw StoreError(.wrongKey) }
            journal.note("record does not open", [.code: ErrorCode(StoreError(.corrupt))], level: .error)
            return nil
        }
        guard let content = body.reveal({ StoredCodec.readRecord($0) }) else {
            journal.note("record does not read", [.code: ErrorCode(StoreError(.corrupt))], level: .error)
            return nil
        }
        return Record(
            key: RecordKey(Space(text: row.space), content.name), owner: content.owner,
            address: content.address, version: row.version, state: row.state, touchedAt: row.touchedAt,
            expiresAt: row.expiresAt, revision: row.revision, body: content.body)
    }

    static func place(_ space: String, _ key: Digest16) -> [UInt8] {
        Array("records/".utf8) + Array(space.utf8) + [0] + key.bytes
    }
}
