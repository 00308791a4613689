import Synchronization

/// A bounded queue from event loops to one consumer: offering never waits, taking yields all that waits.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var items: [Element] = []
        var waiter: CheckedContinuation<[Element]?, Never>?
        var isClosed = false
    }

    private let capacity: Int
    private let state = Mutex(State())

    init(capacity: Int) { self.capacity = capacity }

    /// False when the queue is full or closed; the element is not taken then.
    func offer(_ element: Element) -> Bool {
        let (taken, waiter) = state.withLock { state -> (Bool, CheckedContinuation<[Element]?, Never>?) in
            guard !state.isClosed, state.items.count < capacity else { return (false, nil) }
            if let waiter = state.waiter {
                state.waiter = nil
                return (true, waiter)
            }
            state.items.append(element)
            return (true, nil)
        }
        waiter?.resume(returning: [element])
        return taken
    }

    /// Everything that waits, at least one element; `nil` once the queue is closed and empty. One consumer
    /// only.
    func take() async -> [Element]? {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> [Element]?? in
                if !state.items.isEmpty {
                    var batch: [Element] = []
                    batch.reserveCapacity(state.items.count)
                    swap(&batch, &state.items)
                    return .some(batch)
                }
                if state.isClosed { return .some(nil) }
                precondition(state.waiter == nil, "a mailbox has one consumer")
                state.waiter = continuation
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// What waits may still be taken; nothing more is.
    func close() {
        let waiter = state.withLock { state -> CheckedContinuation<[Element]?, Never>? in
            state.isClosed = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }
}
