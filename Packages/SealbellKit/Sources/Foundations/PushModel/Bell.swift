import Synchronization

/// Wakes one waiting loop. Ringing while nobody waits is remembered once.
package final class Bell: Sendable {
    private struct State {
        var rung = false
        var waiter: LockedContinuation<Void>?
        var sleeper: Sleeper?
    }

    /// A task that sleeps for the waiting loop.
    ///
    /// Safety: it is cancelled under the bell's lock, and the task takes itself out under the same lock
    /// before it ends. Cancelling is what other tasks may do with an `UnsafeCurrentTask`.
    private struct Sleeper: @unchecked Sendable {
        let task: UnsafeCurrentTask
    }

    private let state = Mutex(State())

    package init() {}

    package func ring() {
        let waiter = state.withLock { state -> LockedContinuation<Void>? in
            if let sleeper = state.sleeper {
                state.sleeper = nil
                sleeper.task.cancel()
                return nil
            }
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

    /// Returns when rung, at that moment at the latest, or when the task is cancelled.
    ///
    /// Whoever rings has ended the sleep when ``ring()`` returns, so that a clock which a test moves no
    /// longer counts it.
    package func wait(until end: ContinuousClock.Instant, in world: World) async {
        // A task of its own, which can be cancelled alone.
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.sleep(until: end, in: world) }
        }
    }

    private func sleep(until end: ContinuousClock.Instant, in world: World) async {
        await withUnsafeCurrentTask { task in
            guard let task, beginSleep(Sleeper(task: task)) else { return }
            // Ended early by a ring or a cancellation: either way the wait is over.
            try? await world.sleep(end)
            state.withLock { $0.sleeper = nil }
        }
    }

    /// False when it has been rung.
    private func beginSleep(_ sleeper: Sleeper) -> Bool {
        state.withLock { state in
            guard !state.rung else {
                state.rung = false
                return false
            }
            precondition(state.waiter == nil, "one loop waits at a bell")
            state.sleeper = sleeper
            return true
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
