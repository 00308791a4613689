import Synchronization

/// Wakes one waiting loop. Ringing while nobody waits is remembered once.
package final class Bell: Sendable {
    private struct State {
        var rung = false
        var waiter: LockedContinuation<Void>?
    }

    private let state = Mutex(State())

    package init() {}

    package func ring() {
        let waiter = state.withLock { state -> LockedContinuation<Void>? in
            guard let waiter = state.waiter else {
                state.rung = true
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume()
    }

    /// Returns when rung, or when the task is cancelled. One loop only may wait.
    package func wait() async {
        await withTaskCancellationHandler {
            await pause { Task.isCancelled }
        } onCancel: {
            ring()
        }
    }

    /// Returns when rung, and not before: for a loop that still has a duty in a cancelled task.
    package func waitThroughCancellation() async { await pause { false } }

    private func pause(unless goesOnAnyway: () -> Bool) async {
        await withLockedContinuation(of: Void.self) { continuation in
            let goesOn = state.withLock { state -> Bool in
                if state.rung || goesOnAnyway() {
                    state.rung = false
                    return true
                }
                precondition(state.waiter == nil, "one loop waits at a bell")
                state.waiter = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}
