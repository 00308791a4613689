package import PushModel

extension PostgresStore: StoredRecords {
    package func find(
        _ keys: [Digest16], often: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord?] {
        let core = core
        let outcome: Result<[StoredRecord?], StoreError> = await withCheckedContinuation { continuation in
            core.add(
                .find(keys: keys, now: now) { continuation.resume(returning: .success($0)) }, .find,
                rows: keys.count
            ) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        let (page, unreadable) = try await core.single(.read) { [core] session throws(PostgresFault) in
            try PostgresRecords.page(
                index, after: after, limit: limit, atOnce: core.limits.unreadableAtOnce, now: now, session)
        }
        core.setAside(unreadable)
        return page
    }

    package func setRecordsAside(_ records: [SeenRecord]) async throws(StoreError) -> Int {
        try await core.single(records.isEmpty ? .read : .bulk) { [core] session throws(PostgresFault) in
            try PostgresRecords.setAside(records, ahead: core.limits.aheadMilliseconds, session).standing
        }
    }

    package func tally(_ owners: [Digest16], weighing: Bool) async throws(StoreError) -> [RecordTally] {
        try await core.single(.read) { session throws(PostgresFault) in
            try PostgresRecords.tally(owners, weighing: weighing, session)
        }
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        guard !changes.isEmpty else { return .committed }
        let runs = ChangeCall.runs(changes)
        let answer = try await core.change { ChangeCall(runs: runs, now: now, answer: $0) }
        if case .refused(let index) = answer { return .refused(index: index) }
        return .committed
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await remove(.purge(before: before, limit: limit), now: before)
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await remove(.forget(owner: owner, limit: limit), now: .distantPast)
    }

    private func remove(_ removal: ChangeCall.Removal, now: UnixTime) async throws(StoreError) -> Int {
        let answer = try await core.change { ChangeCall(removal: removal, now: now, answer: $0) }
        guard case .removed(let count) = answer else { throw StoreError(.corrupt) }
        return count
    }
}
