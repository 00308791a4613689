import Synchronization

/// Hands work from the link's thread to tasks. It grows only with what the thread asks for, which has its own
/// bounds.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var items: [Element] = []
        var takers: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextTaker = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    package init() {}

    package func put(_ element: Element) {
        let taker = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.isClosed else { return nil }
            state.items.append(element)
            guard let waiting = state.takers.first else { return nil }
            state.takers[waiting.key] = nil
            return waiting.value
        }
        taker?.resume()
    }

    /// The next element; `nil` once closed.
    package func take() async -> Element? {
        while true {
            let (element, isOver) = state.withLock { state -> (Element?, Bool) in
                if state.isClosed { return (nil, true) }
                return (state.items.isEmpty ? nil : state.items.removeFirst(), false)
            }
            if let element { return element }
            if isOver { return nil }
            await wait()
        }
    }

    /// Nothing more is handed out.
    package func close() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.isClosed = true
            state.items = []
            defer { state.takers = [:] }
            return Array(state.takers.values)
        }
        for one in waiting { one.resume() }
    }

    private func wait() async {
        let number = state.withLock { state in
            state.nextTaker += 1
            return state.nextTaker
        }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state -> Bool in
                if state.isClosed || !state.items.isEmpty { return true }
                state.takers[number] = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}
