import PushModel

/// Rows of records that nearly every call asks for, as the file has them, so that they are not read from it
/// each time: they are kept until they are changed.
///
/// Used on the writing connection's queue, like all code that changes records, and only one process opens the
/// file. The rows are sealed. Every change first drops the row and is then made: rows of a transaction that
/// failed are read again, and unfinished changes are never kept, because finds are answered before the
/// changes of a transaction.
struct FrequentRows {
    /// Rows of each generation: the servers and realms of a large relay. A longer body is not kept, so both
    /// generations together take 4 MiB at most, and some 1.5 MiB with rows as they are.
    private static let rows = 2_048
    private static let bodyBytes = 1_024

    private var young: [Digest16: StoredRecord] = [:]
    /// The older generation; a row that is asked for again moves to the younger one.
    private var old: [Digest16: StoredRecord] = [:]

    var count: Int { young.count + old.count }

    mutating func row(_ key: Digest16) -> StoredRecord? {
        if let row = young[key] { return row }
        guard let row = old.removeValue(forKey: key) else { return nil }
        keep(row)
        return row
    }

    /// A record with an address is not kept: others are deleted by it.
    mutating func keep(_ row: StoredRecord) {
        guard row.address == nil, row.body.count <= Self.bodyBytes else { return }
        if young.count >= Self.rows {
            old = young
            young.removeAll(keepingCapacity: true)
        }
        young[row.key] = row
    }

    mutating func forget(_ key: Digest16) {
        young.removeValue(forKey: key)
        old.removeValue(forKey: key)
    }

    mutating func forgetAll() {
        young.removeAll()
        old.removeAll()
    }
}
