/// The last result with its key: the next look-up nearly always has the same key, and hashing costs more than
/// comparing.
struct LastFound<Key: Equatable & Sendable, Value: Sendable>: Sendable {
    private var last: (key: Key, value: Value)?

    /// - Parameter find: must return the same for the same key as long as this value is kept.
    mutating func value(of key: Key, _ find: () -> Value) -> Value {
        if let last, last.key == key { return last.value }
        let value = find()
        last = (key, value)
        return value
    }
}
