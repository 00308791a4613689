import Synchronization

/// A count that a test can wait for.
package final class Watch: Sendable {
    private struct State {
        var count = 0
        var next = 0
        var waiters: [(id: Int, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var count: Int { state.withLock(\.count) }

    package func add(_ number: Int = 1) {
        let reached = state.withLock { state in
            state.count += number
            let reached = state.waiters.filter { $0.count <= state.count }
            state.waiters.removeAll { $0.count <= state.count }
            return reached
        }
        for waiter in reached { waiter.continuation.resume() }
    }

    /// Returns once the count has reached that number, or when the test has run out of time.
    package func wait(for count: Int) async {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    if state.count >= count || Task.isCancelled { return true }
                    state.waiters.append((id, count, continuation))
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
    }
}

/// What happened, in order.
package final class Trace: Sendable {
    private let words = Noted<[String]>([])

    package init() {}

    package var text: [String] { words.value }
    package func add(_ word: String) { words.change { $0.append(word) } }
    /// Returns once what happened fits, or when the test has run out of time.
    package func until(_ fits: ([String]) -> Bool) async { await words.until(fits) }
}
