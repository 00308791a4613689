import NIOCore
import NIOPosix
import PushModel
import Synchronization

extension World {
    /// The same world, in which a task that runs on an event loop sleeps short spans by that loop's timers.
    ///
    /// By the language's own, each sleep costs seven switches: the thread of its timers wakes, wakes a thread
    /// of its pool, and that one wakes the loop; and the next sleep wakes the first again. By the loop's
    /// timer it costs one (decision 0145).
    ///
    /// A loop's timer does not count while the machine is suspended. So a span longer than ``longestOnLoop``
    /// goes by the language's, and a shorter one may be late by as much, once, behind a suspension.
    func sleepingOnLoops() -> World {
        var world = self
        let (instant, sleep) = (instant, sleep)
        world.sleep = { until in
            let span = until - instant()
            guard span <= Self.longestOnLoop, let loop = MultiThreadedEventLoopGroup.currentEventLoop else {
                return try await sleep(until)
            }
            try await LoopSleep.sleep(span, on: loop)
        }
        return world
    }

    /// The time between two renewals of the lease: what is due behind a suspension then waits no longer than
    /// for a renewal.
    static let longestOnLoop = Duration.seconds(5)
}

/// One sleep, which ends once.
final class LoopSleep: Sendable {
    private enum State {
        case before
        case asleep(UnsafeContinuation<Void, any Error>, Scheduled<Void>)
        case over
    }

    private let state = Mutex(State.before)

    /// - Parameter loop: on which the caller runs.
    /// - Throws: `CancellationError`.
    static func sleep(_ span: Duration, on loop: any EventLoop) async throws {
        let own = LoopSleep()
        try await withTaskCancellationHandler {
            // Resumed once: by whoever takes it out of the state, the timer or a cancellation.
            try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
                own.begin(span, on: loop, continuation)
            }
        } onCancel: {
            own.cancel()
        }
    }

    private func begin(
        _ span: Duration, on loop: any EventLoop, _ continuation: UnsafeContinuation<Void, any Error>
    ) {
        let isCancelled = state.withLock { state in
            if case .over = state { return true }
            // It cannot come before the lock is free.
            let timer = loop.scheduleTask(in: TimeAmount(span)) { self.end() }
            state = .asleep(continuation, timer)
            return false
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) }
    }

    private func end() { take()?.continuation.resume() }

    private func cancel() {
        guard let (continuation, timer) = take() else { return }
        timer.cancel()
        continuation.resume(throwing: CancellationError())
    }

    private func take() -> (continuation: UnsafeContinuation<Void, any Error>, timer: Scheduled<Void>)? {
        state.withLock { state in
            defer { state = .over }
            if case .asleep(let continuation, let timer) = state { return (continuation, timer) }
            return nil
        }
    }
}
