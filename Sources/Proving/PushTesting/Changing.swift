/// `value` as it is but for what `change` says: limits, settings or an entry that differ in a little from
/// what most tests use.
package func changing<Value>(_ value: Value, _ change: (inout Value) -> Void) -> Value {
    var value = value
    change(&value)
    return value
}
