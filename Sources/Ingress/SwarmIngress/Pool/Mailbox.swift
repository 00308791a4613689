import Delivery
import Synchronization

/// Hands work from the link's thread to tasks. It grows only with the thread's requests, which are bounded.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var items = Fifo<Element>()
        var takers = Fifo<CheckedContinuation<Void, Never>>()
        var isClosed = false
    }

    private let state = Mutex(State())

    package init() {}

    package func put(_ element: Element) {
        let taker = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.isClosed else { return nil }
            state.items.append(element)
            return state.takers.popFirst()
        }
        taker?.resume()
    }

    /// The next element; `nil` once closed.
    package func take() async -> Element? {
        while true {
            let (element, isOver) = state.withLock { state -> (Element?, Bool) in
                if state.isClosed { return (nil, true) }
                return (state.items.popFirst(), false)
            }
            if let element { return element }
            if isOver { return nil }
            await wait()
        }
    }

    /// Nothing more is handed out.
    package func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            state.items = Fifo()
            defer { state.takers = Fifo() }
            return state.takers
        }
        waiting.resumeAll()
    }

    private func wait() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state -> Bool in
                if state.isClosed || !state.items.isEmpty { return true }
                state.takers.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}
