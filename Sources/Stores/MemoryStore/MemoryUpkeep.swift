package import PushModel
import Synchronization

// The upkeep operations, as other engines have them: for tests with several relays.
extension MemoryStore: StoredRows {
    package func records(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredRecord> {
        let after = Digest16(place.prefix(16) + Array(repeating: 0, count: max(0, 16 - place.count)))
        return shared.state.withLock { state in
            let found = state.records.values.filter { record in
                place.isEmpty || after.map { record.key > $0 } ?? true
            }
            var page = RowPage<StoredRecord>()
            for record in found.sorted(by: { $0.key < $1.key }).prefix(limit) {
                page.next = record.key.bytes
                if state.aside.contains(record.key) {
                    page.unreadable.append("set aside")
                } else {
                    page.rows.append(record)
                }
            }
            return page
        }
    }

    /// A row's number, or a mark's, in eight bytes.
    private static func place(_ number: Int64) -> StoredPlace {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    private static func number(_ place: StoredPlace) -> Int64 { place.reduce(0) { $0 << 8 | Int64($1) } }

    package func pushes(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredOwed> {
        let row = Self.number(place)
        return shared.state.withLock { state in
            let found = state.rows.values.filter { $0.push.row > row }.sorted { $0.push.row < $1.push.row }
            let pushes = found.prefix(limit).map { StoredOwed(push: $0.push, first: $0.first) }
            return RowPage(rows: pushes, next: pushes.last.map { Self.place($0.push.row) })
        }
    }

    package func marks(
        after place: StoredPlace, limit: Int
    ) async throws(StoreError) -> RowPage<StoredMark> {
        let seen = Self.number(place)
        return shared.state.withLock { state in
            let found = state.ended.dropFirst(state.endedHead + Int(seen)).prefix(limit)
            let marks = found.compactMap { mark, at -> StoredMark? in
                guard let held = state.marks[mark], held.endedAt == at else { return nil }
                return StoredMark(mark: mark, id: held.id, first: held.first, endedAt: at)
            }
            return RowPage(rows: marks, next: found.isEmpty ? nil : Self.place(seen + Int64(found.count)))
        }
    }

    package func settings(_ prefix: String) async throws(StoreError) -> [String: [UInt8]] {
        shared.state.withLock { $0.settings.filter { $0.key.hasPrefix(prefix) } }
    }

    package func lastRevision() async throws(StoreError) -> UInt64 { shared.state.withLock(\.revision) }
}

extension MemoryStore: StoreSettings {
    package func livingOwners() async throws(StoreError) -> [OwnerID] {
        let now = spans()
        return shared.state.withLock { state in
            state.aliveUntil.keys.filter { $0 != owner && !state.isDead($0, now) }
        }
    }

    package func put(setting name: String, to value: [UInt8]?) async throws(StoreError) {
        shared.state.withLock { $0.settings[name] = value }
    }
}

extension MemoryStore: StoreFilling {
    package func fill(_ page: StoredPage, noting name: String, _ value: [UInt8]) async throws(StoreError) {
        shared.state.withLock { state in
            state.fill(page, owner)
            state.settings[name] = value
        }
    }

    /// Rows in memory are copied nowhere.
    package func bar(_ isBarred: Bool) async throws(StoreError) {}
}

extension MemoryStore: StoreResealing {
    package func reseal(_ rows: [Resealed]) async throws(StoreError) -> Int {
        shared.state.withLock { state in rows.count { state.reseal($0) } }
    }
}

extension MemoryState {
    mutating func fill(_ page: StoredPage, _ owner: OwnerID) {
        switch page {
        case .records(let records):
            for record in records where self.records[record.key] == nil {
                self.records[record.key] = record
                revision = max(revision, record.revision)
            }
        case .pushes(let pushes):
            for owed in pushes {
                var push = owed.push
                push.parked = true
                push.row = nextRow
                let row = Row(push: push, owner: owner, first: owed.first)
                rows[push.row] = row
                nextRow += 1
                bytes += push.sealed.count
                owedByApp.add(push.lane, rows: 1, bytes: push.sealed.count)
                park(row)
                noteCustody(push)
                guard let mark = push.mark else { continue }
                marks[mark] = Mark(id: push.id, row: push.row, first: owed.first, endedAt: nil)
            }
        case .marks(let marks):
            for mark in marks {
                self.marks[mark.mark] = Mark(
                    id: mark.id, row: 0, first: mark.first, endedAt: mark.endedAt)
                ended.append((mark.mark, mark.endedAt))
            }
        case .lastRevision(let last):
            revision = max(revision, last)
        }
    }

    /// Whether the row was still as it had been read.
    mutating func reseal(_ row: Resealed) -> Bool {
        switch row {
        case .record(let key, let revision, let body):
            guard records[key]?.revision == revision else { return false }
            records[key]?.body = body
        case .push(let row, let id, let sealed):
            guard let current = rows[row], current.push.id == id else { return false }
            bytes += sealed.count - current.push.sealed.count
            rows[row]?.push.sealed = sealed
        }
        return true
    }
}
