import Synchronization

/// A request that was given up, while its stream stays open: its answer, if one comes yet.
package final class HTTP2LateAnswer: Sendable {
    typealias Waiter = UnsafeContinuation<HTTP2Answer?, Never>

    private enum State {
        case open
        case awaited(Waiter)
        case ended(HTTP2Answer?)
    }

    private let state = Mutex(State.open)

    init() {}

    /// The whole answer; `nil` when none came before the stream ended, or when the task is cancelled. One
    /// caller asks, once.
    package func answer() async -> HTTP2Answer? {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: Waiter) in
                let known = state.withLock { state -> HTTP2Answer?? in
                    switch state {
                    case .ended(let answer): return .some(answer)
                    case .open, .awaited:
                        if Task.isCancelled { return .some(nil) }
                        state = .awaited(waiter)
                        return nil
                    }
                }
                if let known { waiter.resume(returning: known) }
            }
        } onCancel: {
            end(nil)
        }
    }

    /// The stream has ended, with or without a whole answer. Only the first such report counts.
    func end(_ answer: HTTP2Answer?) {
        let waiter = state.withLock { state -> Waiter? in
            defer { if case .ended = state {} else { state = .ended(answer) } }
            if case .awaited(let waiter) = state { return waiter }
            return nil
        }
        waiter?.resume(returning: answer)
    }
}
