import Delivery
import PushModel
package import SessionPush
import Synchronization

/// Pushes that wait for a worker, in one share for each node. They are taken round robin over nodes, so a
/// flood from one node delays another's push by at most one push of each node.
///
/// A share is bounded by bytes. A node whose share is full is not read until it has room.
package final class PushQueue: Sendable {
    package struct Item: Sendable {
        package let node: NodeKey
        /// The part of the ring that the node had when it told of the message.
        package let scope: SwarmScope
        package let body: Secret

        package init(node: NodeKey, scope: SwarmScope, body: Secret) {
            self.node = node
            self.scope = scope
            self.body = body
        }

        /// Bytes of memory that it takes, or somewhat more.
        var size: Int { body.count + 256 }
    }

    private struct State {
        /// Bytes of one node's share.
        var limit: Int
        var shares = FairShares<NodeKey, Item>()
        /// Nodes for which the caller was told that there is no room.
        var awaited: Set<NodeKey> = []
        var takers = Fifo<CheckedContinuation<Void, Never>>()
        var isClosed = false
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
    package var count: Int { state.withLock(\.shares.count) }
    package var isClosed: Bool { state.withLock(\.isClosed) }

    /// Whether the node's next push would be taken. If not, the caller is told when it would.
    package func takes(from node: NodeKey) -> Bool {
        state.withLock { state in
            guard state.shares.bytes(of: node) >= state.limit else { return true }
            state.awaited.insert(node)
            return false
        }
    }

    /// Puts a push into its node's share. The last one may exceed it.
    package func put(_ item: Item) {
        let taker = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.isClosed else { return nil }
            state.shares.append(item, bytes: item.size, of: item.node)
            return state.takers.popFirst()
        }
        taker?.resume()
    }

    /// The next push in turn; `nil` when the queue is closed and empty.
    package func take() async -> Item? {
        while true {
            let (item, isAwaited, isOver) = state.withLock { state in Self.pop(&state) }
            if isAwaited, let item { hasRoom(item.node) }
            if let item { return item }
            if isOver { return nil }
            await waitForItem()
        }
    }

    /// Takes no more pushes; those that are there are still handed out.
    package func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.takers = Fifo() }
            return state.takers
        }
        waiting.resumeAll()
    }

    // MARK: Inside

    /// Room is reported when half of the share is free, not for each push of a node that floods.
    private static func pop(_ state: inout State) -> (Item?, isAwaited: Bool, isOver: Bool) {
        guard let (node, item) = state.shares.pop() else { return (nil, false, state.isClosed) }
        let bytes = state.shares.bytes(of: node)
        let hasRoom = bytes == 0 || bytes < state.limit / 2
        return (item, hasRoom && state.awaited.remove(node) != nil, false)
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
