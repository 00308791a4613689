import Delivery
package import MarmotPush
import PushModel
import Synchronization

/// Events that wait to be opened, in one share for each relay. They are taken round robin over relays, so a
/// flood from one relay delays another's event by at most one event of each relay.
///
/// A share is bounded by the bytes of its events; a reader whose share is full waits, and its socket is then
/// not read.
package final class WrapQueue: Sendable {
    package struct Item: Sendable {
        package let event: NostrEvent
        package let source: EventSource
        /// The relay's share.
        package let relay: Int
        /// Bytes of memory that it takes, or somewhat more: its texts, and what holds them. Asked at both
        /// ends of the queue, and again by the one that waits for room.
        package let size: Int

        package init(event: NostrEvent, source: EventSource, relay: Int) {
            self.event = event
            self.source = source
            self.relay = relay
            size = Self.size(event)
        }

        private static func size(_ event: NostrEvent) -> Int {
            var bytes = 512 + event.content.count
            for tag in event.tags {
                bytes += 64
                for value in tag { bytes += 32 + value.utf8.count }
            }
            return bytes
        }
    }

    private struct State {
        /// Bytes of one relay's share.
        var limit: Int
        var shares = FairShares<Int, Item>()
        /// Those who read a relay and wait for room.
        var putters: [Int: CheckedContinuation<Void, Never>] = [:]
        var takers = Fifo<CheckedContinuation<Void, Never>>()
        var isClosed = false

        mutating func takePutters() -> [CheckedContinuation<Void, Never>] {
            defer { putters = [:] }
            return Array(putters.values)
        }
    }

    private let state: Mutex<State>

    /// - Parameter share: bytes of one relay's events that wait.
    package init(share: Int) {
        state = Mutex(State(limit: share))
    }

    /// Changes the share of each relay. Events that already wait stay.
    package func setShare(_ bytes: Int) {
        let waiting = state.withLock { state in
            state.limit = bytes
            return state.takePutters()
        }
        for one in waiting { one.resume() }
    }

    package var count: Int { state.withLock(\.shares.count) }

    /// Puts an event into its relay's share, once there is room. One caller only for each relay.
    ///
    /// - Returns: whether it was taken; not when the queue closed or the task was cancelled meanwhile.
    package func put(_ item: Item) async -> Bool {
        while true {
            if Task.isCancelled { return false }
            switch offer(item) {
            case .taken: return true
            case .closed: return false
            case .full: await waitForRoom(item.relay)
            }
        }
    }

    /// The next event in turn; `nil` when the queue is closed and empty.
    package func take() async -> Item? {
        while true {
            let (item, putter, isOver) = state.withLock { state in Self.pop(&state) }
            putter?.resume()
            if let item { return item }
            if isOver { return nil }
            await waitForItem()
        }
    }

    /// Takes no more events; those that are there are still handed out.
    package func close() {
        let (takers, putters) = state.withLock { state in
            state.isClosed = true
            defer { state.takers = Fifo() }
            return (state.takers, state.takePutters())
        }
        takers.resumeAll()
        for one in putters { one.resume() }
    }

    // MARK: Inside

    private enum Offer { case taken, full, closed }

    private func offer(_ item: Item) -> Offer {
        let (offer, taker) = state.withLock { state -> (Offer, CheckedContinuation<Void, Never>?) in
            guard !state.isClosed else { return (.closed, nil) }
            // One event always fits; otherwise a large one would wait for ever.
            let bytes = state.shares.bytes(of: item.relay)
            guard bytes == 0 || bytes + item.size <= state.limit else { return (.full, nil) }
            state.shares.append(item, bytes: item.size, of: item.relay)
            return (.taken, state.takers.popFirst())
        }
        taker?.resume()
        return offer
    }

    private static func pop(
        _ state: inout State
    ) -> (Item?, putter: CheckedContinuation<Void, Never>?, isOver: Bool) {
        guard let (relay, item) = state.shares.pop() else { return (nil, nil, state.isClosed) }
        return (item, state.putters.removeValue(forKey: relay), false)
    }

    private func waitForRoom(_ relay: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let goesOn = state.withLock { state -> Bool in
                    guard !state.isClosed, !Task.isCancelled, state.shares.holds(relay) else { return true }
                    precondition(state.putters[relay] == nil, "one reader puts events into a relay's share")
                    state.putters[relay] = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            let putter = state.withLock { $0.putters.removeValue(forKey: relay) }
            putter?.resume()
        }
    }

    private func waitForItem() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state -> Bool in
                if state.isClosed || !state.shares.isEmpty { return true }
                state.takers.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}
