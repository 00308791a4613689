/// A bounded memory of recent entries. When half of the places are taken, all older entries are dropped;
/// entries that are asked for again stay.
struct Recent<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]
    private let half: Int

    init(capacity: Int) { half = max(1, capacity / 2) }

    mutating func value(_ key: Key) -> Value? {
        if let value = newer[key] { return value }
        guard let value = older.removeValue(forKey: key) else { return nil }
        set(value, for: key)
        return value
    }

    mutating func set(_ value: Value, for key: Key) {
        older[key] = nil
        if newer[key] == nil, newer.count >= half {
            older = newer
            newer = [:]
        }
        newer[key] = value
    }

    mutating func forget(_ key: Key) {
        newer[key] = nil
        older[key] = nil
    }
}
