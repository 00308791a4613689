package import PushModel
import Synchronization

extension SealedStore: Registry {
    package func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        guard !keys.isEmpty else { return [] }
        let time = doubted.now
        let rows = try await records.find(keys.map(digests.digest), now: time.judged)
        return opened(rows[...], keys, time)
    }

    package func find(
        _ keys: [RecordKey], seeing count: Int
    ) async throws(StoreError) -> (records: [Record?], sights: [RecordSight?]) {
        let time = doubted.now
        // Before the rows are opened, because an exchange of keys meanwhile makes the sights worthless.
        let epoch = sealer.epoch
        let rows = try await records.find(keys.map(digests.digest), often: count, now: time.judged)
        let found = opened(rows[...], keys, time)
        let sights = zip(rows, found).prefix(count).map { row, record in
            record == nil ? nil : row.map { RecordSight($0, keys: epoch) }
        }
        return (found, sights)
    }

    package func find(
        _ keys: [RecordKey], while sights: [RecordSight]
    ) async throws(StoreError) -> [Record?]? {
        let time = doubted.now
        var names: [Digest16] = []
        names.reserveCapacity(sights.count + keys.count)
        for sight in sights { names.append(sight.row.key) }
        for key in keys { names.append(digests.digest(key)) }
        let rows = try await records.find(names, often: sights.count, now: time.judged)
        let epoch = sealer.epoch
        // By place here and below, and never taken out as an optional: both would copy each row.
        guard rows.count >= sights.count else { return nil }
        for place in sights.indices {
            guard sights[place].keys == epoch, sights[place].isSame(rows, at: place) else { return nil }
            if time.isDoubted, let row = rows[place], row.hasEnded(by: time) { return nil }
        }
        return opened(rows[sights.count...], keys, time)
    }

    private func opened(
        _ rows: ArraySlice<StoredRecord?>, _ keys: [RecordKey], _ time: DoubtedClock.Reading
    ) -> [Record?] {
        var found: [Record?] = []
        found.reserveCapacity(keys.count)
        let first = rows.startIndex
        for place in 0..<min(keys.count, rows.count) {
            guard let row = rows[first + place], !row.hasEnded(by: time) else {
                found.append(nil)
                continue
            }
            found.append(open(row, asked: keys[place]))
        }
        return found
    }

    /// A record that does not open is left out and logged; an expired one has no names any more, and is left
    /// out too. Others take their places, so a short page is the last one.
    package func page(
        _ index: RecordIndex, after revision: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        let stored: StoredIndex =
            switch index {
            case .space(let space): .space(space.text)
            case .owner(let key): .owner(digests.digest(key))
            case .address(let key): .address(digests.digest(key))
            case .expired(let owner, let time): .expired(owner: digests.digest(owner), by: time)
            }
        let time = doubted.now
        var page: [Record] = []
        var after = revision
        while page.count < limit {
            let wanted = max(limit - page.count, min(limit, Self.leastRead))
            let rows = try await records.page(stored, after: after, limit: wanted, now: time.judged)
            for row in rows where page.count < limit && !row.hasEnded(by: time) {
                if let record = paged(row, stored) { page.append(record) }
            }
            guard rows.count == wanted, let last = rows.last else { break }
            after = last.place(in: stored)
        }
        return page
    }

    /// An expired record has no name any more; where asked for, it is listed by its number.
    private func paged(_ row: StoredRecord, _ index: StoredIndex) -> Record? {
        guard case .expired = index else { return open(row, asked: nil) }
        return Record(
            key: RecordKey(Space(text: row.space), Secret([])), version: row.version, state: row.state,
            touchedAt: row.touchedAt, expiresAt: row.expiresAt, revision: row.revision, body: Secret([]))
    }

    package func digest(of name: RecordKey) -> Digest16 { digests.digest(name) }

    /// Rows of one reading, unless the page is smaller: filling a page up must not take one reading for each
    /// row that is left out.
    private static var leastRead: Int { 32 }

    package func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        guard !changes.isEmpty else { return .committed }
        let applied = try await records.apply(stored(changes), now: doubted.now.judged)
        if applied == .committed { news.tell(changes, digests.digest) }
        return applied
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await records.purge(before: before, limit: limit)
    }

    package func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int {
        let owner = digests.digest(owner)
        // All of them, ended ones too, because what was learned of them is found by their names.
        let rows = try await records.page(
            .owner(owner), after: 0, limit: limit, now: UnixTime(milliseconds: .min))
        guard !rows.isEmpty else { return try await records.forget(owner: owner, limit: limit) }
        let keys = rows.map(\.key)
        _ = try await records.apply(
            keys.map { .delete($0, if: .any) } + [.deleteBeside(keys)], now: doubted.now.judged)
        news.tell(removed: rows)
        let left = limit - keys.count
        guard left > 0 else { return keys.count }
        // Records that are set aside do not count in a page.
        return try await records.forget(owner: owner, limit: left) + keys.count
    }

    package func tally(
        _ owners: [RecordKey], weighing: Bool
    ) async throws(StoreError) -> [RecordTally] {
        guard !owners.isEmpty else { return [] }
        return try await records.tally(owners.map(digests.digest), weighing: weighing)
    }

    package var clock: DoubtedClock? { doubted }

    /// With the changes that follow from them: when a record is forgotten or expires, what was learned of it
    /// is deleted. Those changes come last, so that the index of a refused change is the caller's.
    func stored(_ changes: [Change]) -> [StoredChange] {
        let stored = changes.map(stored)
        var gone: [Digest16] = []
        for change in stored {
            switch change {
            case .delete(let key, _), .expire(let key, _, _): gone.append(key)
            case .put(let record, _): if record.state != .live { gone.append(record.key) }
            case .deleteBeside: break
            }
        }
        return gone.isEmpty ? stored : stored + [.deleteBeside(gone)]
    }

    func stored(_ change: Change) -> StoredChange {
        switch change {
        case .put(let record, let condition): .put(seal(record), if: condition)
        case .putBeside(let record, let registration, let touched):
            .put(seal(record, beside: registration), if: .besideLive(touchedNotAfter: touched))
        case .expire(let key, let at, let condition):
            .expire(digests.digest(key), at: doubted.now.believed(at), if: condition)
        case .expireStored(let digest, let at, let condition):
            // By a clock that is years ahead no registration of the years between would be later than this.
            .expire(digest, at: doubted.now.believed(at), if: condition)
        case .delete(let key, let condition): .delete(digests.digest(key), if: condition)
        }
    }

    func seal(_ record: Record, beside registration: Digest16? = nil) -> StoredRecord {
        let key = digests.digest(record.key)
        var record = record
        if !record.key.space.keepsNames { record.key = RecordKey(record.key.space, Secret([])) }
        var row = StoredRecord(
            key: key, space: record.key.space.text, owner: record.owner.map(digests.digest),
            address: registration ?? record.address.map(digests.digest), version: record.version,
            state: record.state, touchedAt: record.touchedAt, expiresAt: record.expiresAt,
            revision: record.revision, body: [])
        row.body = Self.withPlace(of: row) { place in
            sealer.seal(atMost: StoredCodec.size(record), with: place) { StoredCodec.write(record, to: $0) }
        }
        return row
    }

    /// `nil` for a row whose bytes were changed, or which names a seal key that the file does not have (at a
    /// start it has all that were used): the next registration writes it again, and no other row is affected.
    /// One with changed bytes is set aside with the next renewal.
    ///
    /// - Parameter key: by which it was asked for.
    func open(_ row: StoredRecord, asked key: RecordKey?) -> Record? {
        if case .expired = row.state, row.body.isEmpty {
            return key.map { key in
                Record(
                    key: key, version: row.version, state: row.state, touchedAt: row.touchedAt,
                    expiresAt: row.expiresAt, revision: row.revision, body: Secret([]))
            }
        }
        let body: Secret
        do throws(Sealer.Fault) {
            body = try Self.open(row, with: sealer)
        } catch {
            if case .unknownKey = error {
                note("record does not open", .wrongKey)
            } else if brokenRecords.withLock({ $0.add(row) }) {
                note("record does not open", .corrupt)
            }
            return nil
        }
        // The name inside is the one whose digest is the row's key, because the seal binds that key.
        guard let content = body.reveal({ StoredCodec.readRecord($0, named: key?.name) }) else {
            if brokenRecords.withLock({ $0.add(row) }) { note("record does not read", .corrupt) }
            return nil
        }
        let space = Space(text: row.space)
        let keepsNames = space.keepsNames
        guard keepsNames || key != nil else { return nil }
        return Record(
            key: keepsNames ? RecordKey(space, content.name) : key ?? RecordKey(space, content.name),
            digest: row.key, owner: content.owner,
            address: content.address, addressDigest: row.address, version: row.version, state: row.state,
            touchedAt: row.touchedAt,
            expiresAt: row.expiresAt, revision: row.revision, body: content.body)
    }

    private func note(_ event: StaticString, _ code: StoreError.Code) {
        journal.note(event, [.code: ErrorCode(StoreError(code))], level: .error)
    }

    /// What binds the sealed column to its row: every column that a put writes. None of them changes but with
    /// a put, or with an expiry, which empties the body.
    ///
    /// `record/1/` ‖ space ‖ 0 ‖ key (16) ‖ owner and address (0, or 1 and 16 bytes) ‖ version (8) ‖ state
    /// (1; of an expired one its time too, 8) ‖ touched (8) ‖ expires (8), numbers big-endian.
    static func place(of row: StoredRecord) -> [UInt8] { withPlace(of: row) { [UInt8]($0) } }

    /// Lends those bytes: every row that is read has some.
    static func withPlace<Result>(
        of row: StoredRecord, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        // Beside the space: the head and its zero, three digests and what stands before two of them, four
        // words and two bytes: 95.
        // Taken out before: a closure that uses the row copies it several times.
        let (space, key, owner, address) = (row.space, row.key, row.owner, row.address)
        let (version, state) = (row.version, row.state)
        let (touchedAt, expiresAt) = (row.touchedAt, row.expiresAt)
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 128 + space.utf8.count) { room in
            var cursor = PlaceCursor(room)
            cursor.put("record/1/".utf8)
            cursor.put(space.utf8)
            cursor.put(0)
            cursor.put(key)
            cursor.put(owner)
            cursor.put(address)
            cursor.put(word: version)
            switch state {
            case .live: cursor.put(0)
            case .tombstone: cursor.put(2)
            case .expired(let at):
                cursor.put(1)
                cursor.put(word: UInt64(bitPattern: at.milliseconds))
            }
            cursor.put(word: UInt64(bitPattern: touchedAt.milliseconds))
            cursor.put(word: UInt64(bitPattern: expiresAt.milliseconds))
            return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<cursor.at]))
        }
    }

    /// Opens a record's body.
    static func open(_ row: StoredRecord, with sealer: Sealer) throws(Sealer.Fault) -> Secret {
        // For the closure, as above.
        let sealed = row.body
        return try withPlace(of: row) { place -> Result<Secret, Sealer.Fault> in
            do throws(Sealer.Fault) { return .success(try sealer.open(sealed, with: place)) } catch {
                return .failure(error)
            }
        }.get()
    }
}

extension StoredRecord {
    /// Beside those that the engine has already skipped: a record that was stamped by a clock in doubt.
    func hasEnded(by time: DoubtedClock.Reading) -> Bool {
        time.isDoubted && expiresAt <= time.end(of: touchedAt, lasting: expiresAt)
    }
}

/// Writes what binds a record, byte by byte, into room that is there. Every row that is read has one.
private struct PlaceCursor {
    private let out: UnsafeMutableBufferPointer<UInt8>
    private(set) var at = 0

    init(_ out: UnsafeMutableBufferPointer<UInt8>) { self.out = out }

    mutating func put(_ byte: UInt8) {
        out[at] = byte
        at += 1
    }

    mutating func put(_ text: String.UTF8View) {
        at = out[at...].initialize(fromContentsOf: text)
    }

    mutating func put(word: UInt64) {
        UnsafeMutableRawBufferPointer(out).storeBytes(of: word.bigEndian, toByteOffset: at, as: UInt64.self)
        at += 8
    }

    mutating func put(_ digest: Digest16) {
        put(word: digest.high)
        put(word: digest.low)
    }

    mutating func put(_ digest: Digest16?) {
        put(digest == nil ? 0 : 1)
        if let digest { put(digest) }
    }
}
