package import PushModel
import Synchronization

extension MemoryStore: StoredRecords {
    package func find(
        _ keys: [Digest16], often: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord?] {
        shared.state.withLock { state in keys.map { state.record($0, now) } }
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        shared.state.withLock { $0.page(index, after, limit, now) }
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        changing { $0.apply(changes, now) }
    }

    /// Makes changes, and reports what ended with them before the caller learns that they stand.
    func changing<Value>(_ body: (inout MemoryState) -> Value) -> Value {
        let (value, gone) = shared.state.withLock { state in
            let value = body(&state)
            return (value, state.notices.removeValue(forKey: owner) ?? [])
        }
        ended.tell(gone)
        return value
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        shared.state.withLock { $0.purge(before, limit) }
    }

    package func tally(_ owners: [Digest16], weighing: Bool) async throws(StoreError) -> [RecordTally] {
        shared.state.withLock { $0.tally(owners, weighing: weighing) }
    }

    package func setRecordsAside(_ records: [SeenRecord]) async throws(StoreError) -> Int {
        let latest = clock() + RowBounds.recordAside
        return shared.state.withLock { state in
            for seen in records {
                guard var record = state.records[seen.key], !state.aside.contains(seen.key),
                    record.revision == UInt64(clamping: seen.revision)
                else { continue }
                record.expiresAt = min(record.expiresAt, latest)
                state.records[seen.key] = record
                state.aside.insert(seen.key)
            }
            return state.aside.count
        }
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        changing { $0.forget(owner, limit) }
    }
}

extension MemoryState {
    func record(_ key: Digest16, _ now: UnixTime) -> StoredRecord? {
        aside.contains(key) ? nil : records[key].flatMap { $0.expiresAt > now ? $0 : nil }
    }

    /// Looks through all records: this engine is small.
    func page(_ index: StoredIndex, _ after: UInt64, _ limit: Int, _ now: UnixTime) -> [StoredRecord] {
        let found = records.values.filter { record in
            guard record.place(in: index) > after, record.expiresAt > now, !aside.contains(record.key) else {
                return false
            }
            return switch index {
            case .space(let space): record.space == space
            case .owner(let owner): record.owner == owner
            case .address(let address): record.address == address
            case .expired(let owner, let time):
                if case .expired(let at) = record.state { record.owner == owner && at <= time } else { false }
            }
        }
        return Array(found.sorted { $0.place(in: index) < $1.place(in: index) }.prefix(limit))
    }

    mutating func purge(_ before: UnixTime, _ limit: Int) -> Int {
        remove(limit) { $0.expiresAt < before }
    }

    mutating func forget(_ owner: Digest16, _ limit: Int) -> Int {
        let keys = records.values.filter { $0.owner == owner }.prefix(limit).map(\.key)
        for key in keys { delete(key) }
        endOwed(Set(keys))
        return keys.count
    }

    func tally(_ owners: [Digest16], weighing: Bool) -> [RecordTally] {
        var tallies: [Digest16: RecordTally] = [:]
        for owner in owners { tallies[owner] = RecordTally.none }
        for record in records.values {
            guard let owner = record.owner, let so = tallies[owner] else { continue }
            tallies[owner] = so + RecordTally(records: 1, bytes: weighing ? record.body.count : 0)
        }
        return owners.map { tallies[$0] ?? .none }
    }

    private mutating func remove(_ limit: Int, _ isGone: (StoredRecord) -> Bool) -> Int {
        var keys: [Digest16] = []
        for record in records.values where isGone(record) && keys.count < limit { keys.append(record.key) }
        for key in keys { delete(key) }
        return keys.count
    }

    mutating func apply(_ changes: [StoredChange], _ now: UnixTime) -> Applied {
        let saved = changes.count > 1 ? (records, aside, revision) : nil
        var changed: Set<Digest16> = []
        for (index, change) in changes.enumerated() where !make(change, now, &changed) {
            if let saved { (records, aside, revision) = saved }
            return .refused(index: index)
        }
        endOwed(changed)
        return .committed
    }

    /// Ends pushes that are owed to registrations that no longer exist.
    private mutating func endOwed(_ keys: Set<Digest16>) {
        guard !keys.isEmpty, !rows.isEmpty else { return }
        for row in rows.values {
            guard let record = row.push.record, keys.contains(record), !row.push.stands(by: records[record])
            else { continue }
            remove(row)
            if let mark = row.push.mark, marks[mark]?.row == row.push.row { marks[mark] = nil }
            if !row.push.parked { notices[row.owner, default: []].append(row.push.id) }
        }
    }

    /// False when the condition is not met; then nothing was changed.
    ///
    /// - Parameter changed: gains the registrations whose pushes may have ended.
    private mutating func make(
        _ change: StoredChange, _ now: UnixTime, _ changed: inout Set<Digest16>
    ) -> Bool {
        switch change {
        case .put(var new, let condition):
            guard isMet(condition, new.key, now) else { return false }
            if case .besideLive = condition, let beside = new.address, record(beside, now)?.state != .live {
                return false
            }
            revision += 1
            new.revision = revision
            records[new.key] = new
            changed.insert(new.key)
            aside.remove(new.key)
        case .expire(let key, let at, let condition):
            guard isMet(condition, key, now) else { return false }
            expire(key, at, now)
            changed.insert(key)
        case .delete(let key, let condition):
            guard isMet(condition, key, now) else { return false }
            delete(key)
            changed.insert(key)
        case .deleteBeside(let keys):
            let beside = Set(keys)
            let gone = records.values.filter { $0.address.map(beside.contains) ?? false }
            for record in gone { delete(record.key) }
        }
        return true
    }

    private mutating func delete(_ key: Digest16) {
        records[key] = nil
        aside.remove(key)
    }

    private func isMet(_ condition: Condition, _ key: Digest16, _ now: UnixTime) -> Bool {
        condition.isMet(
            by: record(key, now).map { ClearColumns($0) })
    }

    /// Only live records expire: the first time is kept, and a tombstone stays one.
    private mutating func expire(_ key: Digest16, _ at: UnixTime, _ now: UnixTime) {
        guard var current = record(key, now), current.state == .live else { return }
        revision += 1
        current.state = .expired(at: at)
        // As in every engine: an expired record keeps only the fact that it has expired.
        current.body = []
        current.expiresAt = min(current.expiresAt, at + Record.expiredLife)
        current.revision = revision
        records[key] = current
    }
}
