package import MarmotPush
import PushModel
import Synchronization

/// Events that wait to be opened, a share for each relay. They are handed out round robin over relays, so a
/// flood of one relay delays another's by one event for each relay, and no more.
///
/// A share is bounded by the bytes that its events take; who finds its own full waits, and then its socket
/// is not read.
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

    private struct Share {
        var items: [Item] = []
        /// Items before it were taken; they are removed together.
        var head = 0
        var bytes = 0
        /// The one who reads this relay waits for room.
        var putter: CheckedContinuation<Void, Never>?

        var count: Int { items.count - head }

        mutating func pop() -> Item {
            let item = items[head]
            head += 1
            bytes -= item.size
            // Moved seldom, and at most as many as were taken since.
            if head == items.count || (head >= 64 && head * 2 >= items.count) {
                items.removeFirst(head)
                head = 0
            }
            return item
        }
    }

    private struct State {
        /// Bytes of one relay's share.
        var limit: Int
        var shares: [Int: Share] = [:]
        /// Relays with something to take, in their turn.
        var turns: [Int] = []
        var takers: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextTaker = 0
        var isClosed = false
        var count = 0
    }

    private let state: Mutex<State>

    /// - Parameter share: bytes of one relay's events that wait.
    package init(share: Int) {
        state = Mutex(State(limit: share))
    }

    /// Another share for each relay. What waits already stays.
    package func setShare(_ bytes: Int) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.limit = bytes
            let waiting = state.shares.values.compactMap(\.putter)
            for relay in state.shares.keys { state.shares[relay]?.putter = nil }
            return waiting
        }
        for one in waiting { one.resume() }
    }

    package var count: Int { state.withLock(\.count) }

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

    /// Takes nothing any more; what is there is still handed out.
    package func close() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.isClosed = true
            let waiting = Array(state.takers.values) + state.shares.values.compactMap(\.putter)
            state.takers = [:]
            for relay in state.shares.keys { state.shares[relay]?.putter = nil }
            return waiting
        }
        for one in waiting { one.resume() }
    }

    // MARK: Inside

    private enum Offer { case taken, full, closed }

    private func offer(_ item: Item) -> Offer {
        let (offer, taker) = state.withLock { state -> (Offer, CheckedContinuation<Void, Never>?) in
            guard !state.isClosed else { return (.closed, nil) }
            let size = item.size
            let (count, bytes) = state.shares[item.relay].map { ($0.count, $0.bytes) } ?? (0, 0)
            // One event fits always, or a large one would wait for ever.
            guard count == 0 || bytes + size <= state.limit else { return (.full, nil) }
            if count == 0 { state.turns.append(item.relay) }
            state.shares[item.relay, default: Share()].items.append(item)
            state.shares[item.relay]?.bytes += size
            state.count += 1
            guard let waiting = state.takers.first else { return (.taken, nil) }
            state.takers[waiting.key] = nil
            return (.taken, waiting.value)
        }
        taker?.resume()
        return offer
    }

    private static func pop(
        _ state: inout State
    ) -> (Item?, putter: CheckedContinuation<Void, Never>?, isOver: Bool) {
        guard !state.turns.isEmpty else { return (nil, nil, state.isClosed) }
        let relay = state.turns.removeFirst()
        guard let item = state.shares[relay]?.pop() else { return (nil, nil, state.isClosed) }
        state.count -= 1
        let putter = state.shares[relay]?.putter
        if state.shares[relay]?.count == 0 {
            state.shares[relay] = nil
        } else {
            state.shares[relay]?.putter = nil
            state.turns.append(relay)
        }
        return (item, putter, false)
    }

    private func waitForRoom(_ relay: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let goesOn = state.withLock { state -> Bool in
                    guard !state.isClosed, !Task.isCancelled, let share = state.shares[relay] else {
                        return true
                    }
                    precondition(share.putter == nil, "one reader puts events into a relay's share")
                    state.shares[relay]?.putter = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            let putter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                defer { state.shares[relay]?.putter = nil }
                return state.shares[relay]?.putter
            }
            putter?.resume()
        }
    }

    private func waitForItem() async {
        let number = state.withLock { state in
            state.nextTaker += 1
            return state.nextTaker
        }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state -> Bool in
                if state.isClosed || !state.turns.isEmpty { return true }
                state.takers[number] = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
    }
}
