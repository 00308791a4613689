import Synchronization

/// Tells waiting tests that something has changed, so that none of them has to look again and again.
package final class Signal: Sendable {
    private struct State {
        var changes: UInt64 = 0
        var nextID: UInt64 = 0
        var waiters: [(id: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// To be called behind every change of what tests wait for.
    package func changed() {
        let waiters = state.withLock { state in
            state.changes += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume() }
    }

    /// Asks at once, and again behind every change, until the answer is yes.
    ///
    /// - Returns: false when the task was cancelled first, as at the end of a test's time.
    @discardableResult
    package func until(_ holds: () throws -> Bool) async rethrows -> Bool {
        while true {
            let seen = state.withLock(\.changes)
            if try holds() { return true }
            if Task.isCancelled { return false }
            await change(behind: seen)
        }
    }

    /// Returns behind a change that came after so many, at once if it has come already, or when cancelled.
    private func change(behind seen: UInt64) async {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    if state.changes != seen || Task.isCancelled { return true }
                    state.waiters.append((id, continuation))
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

/// A value that several tasks of a test look at, and wait for.
package final class Noted<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    private let signal = Signal()

    package init(_ value: Value) { state = Mutex(value) }

    package var value: Value { state.withLock { $0 } }
    package func set(_ value: Value) { change { $0 = value } }

    /// Changes the value in one step, whoever else does so at the same time.
    package func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        defer { signal.changed() }
        return state.withLock { body(&$0) }
    }

    /// Returns once the value fits; false when the task was cancelled first.
    @discardableResult
    package func until(_ fits: (Value) -> Bool) async -> Bool { await signal.until { fits(value) } }
}

/// Returns when the task is cancelled: what a test puts in the place of something that never answers.
package func untilCancelled() async {
    // A stream that nobody feeds ends for a cancelled reader, and in no other way.
    let (stream, feeder) = AsyncStream.makeStream(of: Never.self)
    for await _ in stream {}
    withExtendedLifetime(feeder) {}
}

/// Looks again and again until the answer is yes: for other processes, which tell nobody of their changes.
/// Whatever runs in this process has an event to wait for, and no use for this.
///
/// - Parameters:
///   - span: after so long it is given up. A minute outlasts any start or end of a program.
///   - pause: between two looks.
/// - Returns: false when it was given up, or the task was cancelled.
package func watchOutside(
    for span: Duration = .seconds(60), every pause: Duration = .milliseconds(10),
    _ holds: () async throws -> Bool
) async rethrows -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + span
    while true {
        if try await holds() { return true }
        guard clock.now < end else { return false }
        // It fails when the task is cancelled, and then there is nobody left to tell.
        do { try await clock.sleep(for: pause) } catch { return false }
    }
}
