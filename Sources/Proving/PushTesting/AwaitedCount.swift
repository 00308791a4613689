import Synchronization

/// A count that a test can wait for.
package final class AwaitedCount: Sendable {
    private struct State {
        var count = 0
        /// Each with the count that it waits for.
        var waiters = WaitList<Int>()
    }

    private let state = Mutex(State())

    package init() {}

    package var count: Int { state.withLock(\.count) }

    package func add(_ number: Int = 1) {
        let reached = state.withLock { state in
            state.count += number
            return state.waiters.take { [count = state.count] in $0 <= count }
        }
        for waiter in reached { waiter.resume(returning: .came) }
    }

    /// Returns once the count has reached that number, or when the test has run out of time or of patience,
    /// which is reported as the test's failure.
    package func wait(
        for count: Int, _ what: String = "a count", looks: Int = Patience.looks, file: String = #fileID,
        line: Int = #line
    ) async {
        _ = await waits(
            for: "\(what) of \(count), now \(self.count),", looks: looks, file: file, line: line
        ) { id, continuation in
            state.withLock { state in
                if state.count >= count { return .came }
                if Task.isCancelled { return .cancelled }
                state.waiters.enter(id, count, continuation)
                return nil
            }
        } leave: { id in
            self.state.withLock { $0.waiters.take(id) }
        }
    }
}

/// What happened, in order.
package final class Trace: Sendable {
    private let words = Noted<[String]>([])

    package init() {}

    package var text: [String] { words.value }
    package func add(_ word: String) { words.change { $0.append(word) } }
    /// Returns once the events match, or when the test has run out of time or of patience.
    package func until(
        file: String = #fileID, line: Int = #line, _ fits: ([String]) -> Bool
    ) async {
        await words.until(for: "a trace that fits", file: file, line: line, fits)
    }
}
