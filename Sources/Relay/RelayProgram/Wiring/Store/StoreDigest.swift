import Primitives
import PushModel
import WireFormats

/// How much stands in a store, and a digest of each kind of rows that does not depend on their order: the sum
/// of the SHA-256 of each. Two stores with the same rows have the same digests, whichever engine holds them.
///
/// Who owns a push, and whether it is in somebody's memory, is left out: a copy changes both.
struct StoreDigest: Sendable, Hashable {
    struct Sum: Sendable, Hashable {
        private(set) var count = 0
        private var words: [UInt64] = [0, 0, 0, 0]

        mutating func add(_ row: [UInt8]) {
            let hash = SHA256.hash(row)
            count += 1
            for index in 0..<4 {
                let word = hash[8 * index..<8 * index + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                words[index] &+= word
            }
        }

        /// 64 hexadecimal digits.
        var text: String {
            Hex.encode(words.flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } })
        }
    }

    var records = Sum()
    var pushes = Sum()
    var marks = Sum()
    var settings = Sum()
    /// Records and pushes that cannot be read: they are in none of the sums, and in no copy.
    var unreadable = 0

    /// Rows of one page: some hundreds of KiB.
    static let page = 1_000
    /// Nothing of ours; the copy's own, and what living relays say of themselves.
    private static let passing = ["copy/", "lease/", StoreSetting.holder]

    /// Goes through all rows.
    ///
    /// - Parameter cutoff: marks that are older hold nothing back any more, and are not counted.
    /// - Parameter told: rows so far, and of records which part; after each page.
    static func of(
        _ store: any StoredRows, cutoff: UnixTime, _ told: (Int, WorkDone.Whole) -> Void = { _, _ in }
    ) async throws(StoreError) -> StoreDigest {
        var digest = StoreDigest()
        try await digest.addRecords(store, told)
        try await digest.addPushes(store, told)
        for mark in try await heldMarks(store, cutoff) { digest.marks.add(bytes(mark)) }
        for (name, value) in try await lasting(store) {
            var bytes = Array(name.utf8)
            bytes.append(0)
            digest.settings.add(bytes + value)
        }
        return digest
    }

    private mutating func addRecords(
        _ store: any StoredRows, _ told: (Int, WorkDone.Whole) -> Void
    ) async throws(StoreError) {
        var place: StoredPlace? = []
        // Ends: each page begins behind the last.
        while let after = place {
            let page = try await store.records(after: after, limit: Self.page)
            for record in page.rows { records.add(Self.bytes(record)) }
            unreadable += page.unreadable.count
            if let last = page.rows.last { told(records.count, .share(last.key.share)) }
            place = page.next
        }
    }

    private mutating func addPushes(
        _ store: any StoredRows, _ told: (Int, WorkDone.Whole) -> Void
    ) async throws(StoreError) {
        var place: StoredPlace? = []
        // Ends: as above.
        while let after = place {
            let page = try await store.pushes(after: after, limit: Self.page)
            for push in page.rows { pushes.add(Self.bytes(push)) }
            unreadable += page.unreadable.count
            told(records.count + pushes.count, .unknown)
            place = page.next
        }
    }

    private static func minute(_ time: UnixTime) -> Int64 { time.milliseconds / 60_000 }

    /// Marks that hold, each once: at most as many as are settled in ten minutes. Their time is told by the
    /// minute, and an outcome of none as acceptance: finer than that, not every engine knows it.
    static func heldMarks(
        _ store: any StoredRows, _ cutoff: UnixTime
    ) async throws(StoreError) -> [StoredMark] {
        var held: [Digest16: StoredMark] = [:]
        var place: StoredPlace? = []
        while let after = place {
            let page = try await store.marks(after: after, limit: Self.page)
            for var mark in page.rows where minute(mark.endedAt) >= minute(cutoff) {
                mark.endedAt = UnixTime(milliseconds: minute(mark.endedAt) * 60_000)
                mark.first = mark.first ?? .accepted
                held[mark.mark] = mark
            }
            place = page.next
        }
        return Array(held.values)
    }

    /// What goes with the rows into another store.
    static func lasting(_ store: any StoredRows) async throws(StoreError) -> [String: [UInt8]] {
        try await store.settings("").filter { name, _ in !passing.contains { name.hasPrefix($0) } }
    }

    // MARK: rows as bytes

    private static func bytes(_ record: StoredRecord) -> [UInt8] {
        var out = record.key.bytes
        put(Array(record.space.utf8), to: &out)
        put(record.owner?.bytes ?? [], to: &out)
        put(record.address?.bytes ?? [], to: &out)
        let state: (UInt8, UnixTime) =
            switch record.state {
            case .live: (0, .distantPast)
            case .expired(let at): (1, at)
            case .tombstone: (2, .distantPast)
            }
        out.append(state.0)
        let words = [
            record.version, UInt64(bitPattern: state.1.milliseconds),
            UInt64(bitPattern: record.touchedAt.milliseconds),
            UInt64(bitPattern: record.expiresAt.milliseconds), record.revision
        ]
        for word in words { withUnsafeBytes(of: word.bigEndian) { out += $0 } }
        put(record.body, to: &out)
        return out
    }

    private static func bytes(_ owed: StoredOwed) -> [UInt8] {
        let push = owed.push
        var out = push.id.value.bytes + push.origin.bytes
        out += [push.pushClass.rawValue, owed.first?.rawValue ?? 0]
        put(Array(push.lane.utf8), to: &out)
        put(push.record?.bytes ?? [], to: &out)
        put(push.mark?.bytes ?? [], to: &out)
        let words = [
            push.touchedAt.milliseconds, push.notBefore.milliseconds,
            push.custodyEnds.milliseconds, Int64(push.attempt), push.epoch
        ]
        for word in words { withUnsafeBytes(of: word.bigEndian) { out += $0 } }
        put(push.sealed, to: &out)
        return out
    }

    private static func bytes(_ mark: StoredMark) -> [UInt8] {
        var out = mark.mark.bytes + mark.id.value.bytes + [mark.first?.rawValue ?? 0]
        withUnsafeBytes(of: mark.endedAt.milliseconds.bigEndian) { out += $0 }
        return out
    }

    private static func put(_ field: [UInt8], to out: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(field.count).bigEndian) { out += $0 }
        out += field
    }
}
