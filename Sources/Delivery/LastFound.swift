/// What was found last, with what it was asked by: nearly always the next asks by the same, and a hash costs
/// more than to compare it.
struct LastFound<Key: Equatable & Sendable, Value: Sendable>: Sendable {
    private var last: (key: Key, value: Value)?

    /// - Parameter find: gives the same for the same key as long as this is kept.
    mutating func value(of key: Key, _ find: () -> Value) -> Value {
        if let last, last.key == key { return last.value }
        let value = find()
        last = (key, value)
        return value
    }
}
