import Synchronization

/// Resumes the waiter exactly once, whichever comes first: the answer or a cancellation.
package final class FirstAnswer<Value: Sendable>: Sendable {
    private struct State {
        var waiter: CheckedContinuation<Value, Never>?
        var given: Value?
    }
    private let state = Mutex(State())

    package init() {}

    package func wait(_ waiter: CheckedContinuation<Value, Never>) {
        let given = state.withLock { state -> Value? in
            if state.given == nil { state.waiter = waiter }
            return state.given
        }
        if let given { waiter.resume(returning: given) }
    }

    package func give(_ value: Value) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
            defer { state.waiter = nil }
            if state.given == nil { state.given = value }
            return state.waiter
        }
        waiter?.resume(returning: value)
    }
}
