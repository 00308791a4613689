import PushModel

/// Rows of records that nearly every call asks for, as the file has them, so that they are not read from it
/// each time: they are kept until they are changed.
///
/// Lives on the writing connection's queue, as whatever changes a record does, and only one process opens the
/// file. The rows are sealed. Every change forgets first and is made then: what a failed transaction took
/// back is read again, and what is under way is never kept, for finds are answered between transactions.
struct FrequentRows {
    /// Rows of each generation: the servers and realms of a large relay. A longer body is not kept, so both
    /// generations together take 4 MiB at most, and some 1.5 MiB with rows as they are.
    private static let rows = 2_048
    private static let bodyBytes = 1_024

    private var young: [Digest16: StoredRecord] = [:]
    /// Those of before; what is asked for again is young again.
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
