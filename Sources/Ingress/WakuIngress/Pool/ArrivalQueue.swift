import Delivery
import PushModel
import Synchronization

/// Messages that wait for a worker, bounded by their bytes. A producer without room waits, and then the node
/// is not polled, or no further page of its store is asked for.
package final class ArrivalQueue: Sendable {
    private struct State {
        var items = Fifo<WakuArrival>()
        var bytes = 0
        var takers = Fifo<CheckedContinuation<Void, Never>>()
        var putters = Fifo<CheckedContinuation<Void, Never>>()
        var isClosed = false
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter bytes: the last message may exceed them.
    package init(bytes: Int) { limit = bytes }

    package var count: Int { state.withLock(\.items.count) }
    package var bytes: Int { state.withLock(\.bytes) }

    /// Puts a message at the end, once there is room.
    ///
    /// - Returns: whether it was taken; not when the queue closed or the task was cancelled meanwhile.
    package func put(_ item: WakuArrival) async -> Bool {
        while true {
            if Task.isCancelled { return false }
            let (isTaken, isClosed, taker) = state.withLock { state in offer(item, &state) }
            taker?.resume()
            if isTaken { return true }
            if isClosed { return false }
            await waitForRoom()
        }
    }

    /// The oldest message; `nil` when the queue is closed and empty.
    package func take() async -> WakuArrival? {
        while true {
            let (item, isOver, putters) = state.withLock { state in pop(&state) }
            putters.resumeAll()
            if let item { return item }
            if isOver { return nil }
            await waitForItem()
        }
    }

    /// Takes no more messages; those that are there are still handed out.
    package func close() {
        let (takers, putters) = state.withLock { state in
            state.isClosed = true
            defer { (state.takers, state.putters) = (Fifo(), Fifo()) }
            return (state.takers, state.putters)
        }
        takers.resumeAll()
        putters.resumeAll()
    }

    // MARK: Inside

    private func offer(
        _ item: WakuArrival, _ state: inout State
    ) -> (isTaken: Bool, isClosed: Bool, taker: CheckedContinuation<Void, Never>?) {
        guard !state.isClosed, state.bytes < limit else { return (false, state.isClosed, nil) }
        state.items.append(item)
        state.bytes += item.size
        return (true, false, state.takers.popFirst())
    }

    /// Producers that wait for room continue when half of it is free.
    private func pop(
        _ state: inout State
    ) -> (item: WakuArrival?, isOver: Bool, putters: Fifo<CheckedContinuation<Void, Never>>) {
        guard let item = state.items.popFirst() else { return (nil, state.isClosed, Fifo()) }
        state.bytes -= item.size
        guard state.bytes <= limit / 2 else { return (item, false, Fifo()) }
        defer { state.putters = Fifo() }
        return (item, false, state.putters)
    }

    private func waitForItem() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state -> Bool in
                if state.isClosed || !state.items.isEmpty { return true }
                state.takers.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
    }

    private func waitForRoom() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let goesOn = state.withLock { state -> Bool in
                    if state.isClosed || state.bytes < limit || Task.isCancelled { return true }
                    state.putters.append(continuation)
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            // All of them check again; there are two.
            let putters = state.withLock { state in
                defer { state.putters = Fifo() }
                return state.putters
            }
            putters.resumeAll()
        }
    }
}
