import Synchronization

/// Tells waiting tests that something has changed, so that none of them has to look again and again.
package final class Signal: Sendable {
    private struct State {
        var changes: UInt64 = 0
        var waiters = WaitList<Void>()
    }

    private let state = Mutex(State())

    package init() {}

    /// Call it after every change of something that tests wait for.
    package func changed() {
        let waiters = state.withLock { state in
            state.changes += 1
            return state.waiters.take { _ in true }
        }
        for waiter in waiters { waiter.resume(returning: .came) }
    }

    /// Asks at once, and again after every change, until the answer is yes.
    ///
    /// - Parameter what: a noun for the message if no more changes come.
    /// - Returns: false if the task was cancelled first, as at the end of a test's time, or if no change came
    ///   for as long as a test waits; the latter is reported as the test's failure.
    @discardableResult
    package func until(
        for what: String = "a change that fits", looks: Int = Patience.looks, file: String = #fileID,
        line: Int = #line, _ holds: () throws -> Bool
    ) async rethrows -> Bool {
        while true {
            let seen = state.withLock(\.changes)
            if try holds() { return true }
            if Task.isCancelled { return false }
            guard await change(behind: seen, what, looks, file, line) else { return false }
        }
    }

    /// Returns after the first change beyond this count, at once if it has already come; false if none came.
    private func change(
        behind seen: UInt64, _ what: String, _ looks: Int, _ file: String, _ line: Int
    ) async -> Bool {
        await waits(for: what, looks: looks, file: file, line: line) { id, continuation in
            state.withLock { state in
                if state.changes != seen { return .came }
                if Task.isCancelled { return .cancelled }
                state.waiters.enter(id, (), continuation)
                return nil
            }
        } leave: { id in
            self.state.withLock { $0.waiters.take(id) }
        }
    }
}

/// A value that several tasks of a test read and wait for.
package final class Noted<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    private let signal = Signal()

    package init(_ value: Value) { state = Mutex(value) }

    package var value: Value { state.withLock { $0 } }
    package func set(_ value: Value) { change { $0 = value } }

    /// Changes the value in one step, even if others do so at the same time.
    package func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        defer { signal.changed() }
        return state.withLock { body(&$0) }
    }

    /// Returns once the value matches; false if it never did, as ``Signal/until(for:looks:file:line:_:)``
    /// says.
    @discardableResult
    package func until(
        for what: String = "a value that fits", looks: Int = Patience.looks, file: String = #fileID,
        line: Int = #line, _ fits: (Value) -> Bool
    ) async -> Bool {
        await signal.until(for: what, looks: looks, file: file, line: line) { fits(value) }
    }
}

/// Returns only when the task is cancelled. A test uses it in place of something that never answers.
package func untilCancelled() async {
    // A stream that nobody feeds ends only for a cancelled reader.
    let (stream, feeder) = AsyncStream.makeStream(of: Never.self)
    for await _ in stream {}
    withExtendedLifetime(feeder) {}
}

/// Checks again and again until the answer is yes: for other processes, which do not announce their changes.
/// Code in this process should wait for an event instead.
///
/// - Parameters:
///   - span: how long to try. A check and its pause count for at most a second, as in ``Patience``, so that a
///     busy machine makes as many checks. The default is longer than any start or end of a program.
///   - pause: between two checks.
/// - Returns: false if the span ended, or the task was cancelled.
package func watchOutside(
    for span: Duration = Patience.pause * Patience.looks, every pause: Duration = .milliseconds(10),
    _ holds: () async throws -> Bool
) async rethrows -> Bool {
    let clock = ContinuousClock()
    var spent = Duration.zero
    while true {
        let began = clock.now
        if try await holds() { return true }
        guard spent < span else { return false }
        // It fails if the task is cancelled; then nobody is waiting for the result.
        do { try await clock.sleep(for: pause) } catch { return false }
        // The caller may have asked for a long pause; time beyond it is due to the machine.
        spent += min(clock.now - began, max(pause, Patience.pause))
    }
}
