/// What a task waits with that is resumed exactly once, by whoever took it out of a state under its lock.
///
/// Only where that can be read off one file: a debug build checks it, a release build does not, because the
/// check is two blocks of memory for each wait. Everywhere else stands a `CheckedContinuation`.
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
