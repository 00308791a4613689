import PushModel
package import SessionPush
import Synchronization

/// Pushes that wait for a worker, a share for each node. They are handed out round robin over nodes, so a
/// flood of one node delays another's by one push for each node, and no more.
///
/// A share is bounded by bytes. Of a node whose share is full nothing more is read until it has room.
package final class PushQueue: Sendable {
    package struct Item: Sendable {
        package let node: NodeKey
        package let swarm: UInt64
        package let body: Secret

        package init(node: NodeKey, swarm: UInt64, body: Secret) {
            self.node = node
            self.swarm = swarm
            self.body = body
        }

        /// Bytes of memory that it takes, or somewhat more.
        var size: Int { body.count + 256 }
    }

    private struct Share {
        var items: [Item] = []
        /// Items before it were taken; they are removed together.
        var head = 0
        var bytes = 0
        /// Somebody was told that there is no room.
        var isAwaited = false

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
        /// Bytes of one node's share.
        var limit: Int
        var shares: [NodeKey: Share] = [:]
        /// Nodes with something to take, in their turn.
        var turns: [NodeKey] = []
        var turn = 0
        var takers: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextTaker = 0
        var isClosed = false
        var count = 0
    }

    private let state: Mutex<State>
    private let hasRoom: @Sendable (NodeKey) -> Void

    /// - Parameters:
    ///   - share: bytes of one node's pushes that wait.
    ///   - hasRoom: called once there is room for a node that had been told that there was none.
    package init(share: Int, hasRoom: @escaping @Sendable (NodeKey) -> Void) {
        state = Mutex(State(limit: share))
        self.hasRoom = hasRoom
    }

    package func setShare(_ bytes: Int) { state.withLock { $0.limit = bytes } }
    package var count: Int { state.withLock(\.count) }

    /// Whether the node's next push would be taken. If not, the caller is told when it would.
    package func takes(from node: NodeKey) -> Bool {
        state.withLock { state in
            guard let share = state.shares[node], share.bytes >= state.limit else { return true }
            state.shares[node]?.isAwaited = true
            return false
        }
    }

    /// Puts a push into its node's share. The last one may exceed it.
    package func put(_ item: Item) {
        let taker = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.isClosed else { return nil }
            if state.shares[item.node] == nil { state.turns.append(item.node) }
            state.shares[item.node, default: Share()].items.append(item)
            state.shares[item.node]?.bytes += item.size
            state.count += 1
            guard let waiting = state.takers.first else { return nil }
            state.takers[waiting.key] = nil
            return waiting.value
        }
        taker?.resume()
    }

    /// The next push in turn; `nil` when the queue is closed and empty.
    package func take() async -> Item? {
        while true {
            let (item, awaited, isOver) = state.withLock { state in Self.pop(&state) }
            if awaited, let item { hasRoom(item.node) }
            if let item { return item }
            if isOver { return nil }
            await waitForItem()
        }
    }

    /// Takes nothing any more; what is there is still handed out.
    package func close() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.isClosed = true
            defer { state.takers = [:] }
            return Array(state.takers.values)
        }
        for one in waiting { one.resume() }
    }

    // MARK: Inside

    private static func pop(_ state: inout State) -> (Item?, isAwaited: Bool, isOver: Bool) {
        guard !state.turns.isEmpty else { return (nil, false, state.isClosed) }
        state.turn = state.turn < state.turns.count ? state.turn : 0
        let node = state.turns[state.turn]
        guard let item = state.shares[node]?.pop() else { return (nil, false, state.isClosed) }
        state.count -= 1
        let share = state.shares[node] ?? Share()
        let isAwaited = share.isAwaited && share.bytes < state.limit / 2
        if isAwaited { state.shares[node]?.isAwaited = false }
        if share.count == 0 {
            state.shares[node] = nil
            // The last takes its turn, which comes a little sooner for that.
            state.turns.swapAt(state.turn, state.turns.count - 1)
            state.turns.removeLast()
        } else {
            state.turn += 1
        }
        return (item, isAwaited || (share.isAwaited && share.count == 0), false)
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
