/// A continuation that is resumed exactly once, by the code that took it out of a state under its lock.
///
/// Used only where one file shows that this holds: a debug build checks it, a release build does not, because
/// the check takes two blocks of memory for each wait. Everywhere else a `CheckedContinuation` is used.
#if DEBUG
@usableFromInline package typealias LockedContinuation<Value> = CheckedContinuation<Value, Never>
#else
@usableFromInline package typealias LockedContinuation<Value> = UnsafeContinuation<Value, Never>
#endif

/// Waits until what `body` was given is resumed, which it may do itself.
@inlinable @inline(__always)
package func withLockedContinuation<Value: Sendable>(
    of type: Value.Type = Value.self, _ body: (LockedContinuation<Value>) -> Void
) async -> Value {
    #if DEBUG
    await withCheckedContinuation(body)
    #else
    await withUnsafeContinuation(body)
    #endif
}
