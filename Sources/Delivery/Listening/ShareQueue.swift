import Synchronization

/// What an ingress that goes out itself has read and no worker has taken yet, in one share for each source.
/// Items are taken round robin over sources, so a flood from one source delays another's item by at most one
/// item of each source.
///
/// A share is bounded by bytes. A source whose share is full is not read until it has room: whoever reads it
/// waits in ``put(_:bytes:of:)``, or asks ``takes(from:)`` before it reads and is told later.
package final class ShareQueue<Source: Hashable & Sendable, Item: Sendable>: Sendable {
    /// What a share takes.
    package enum Fit: Sendable {
        /// Items whose bytes fit, and any item when it is empty: otherwise a large one would wait for ever.
        /// There is news of room with each item that is taken.
        case whole
        /// Items until its bytes are reached, so that the last one may exceed them. There is news of room
        /// when half of the share is free.
        case overrun
    }

    private typealias Waiter = CheckedContinuation<Void, Never>

    private struct State {
        /// Bytes of one source's share.
        var limit: Int
        var shares = FairShares<Source, Item>()
        /// Those who wait for room: as many as read the source.
        var putters: [Source: [Waiter]] = [:]
        /// Sources for which the caller was told that there is no room.
        var awaited: Set<Source> = []
        var takers = Fifo<Waiter>()
        var isClosed = false

        mutating func takePutters() -> [Waiter] {
            defer { putters = [:] }
            return putters.values.flatMap(\.self)
        }
    }

    private let state: Mutex<State>
    private let fit: Fit
    private let hasRoom: @Sendable (Source) -> Void

    /// - Parameters:
    ///   - share: bytes of one source's items that wait.
    ///   - hasRoom: called once there is room for a source of which ``takes(from:)`` said that it has none.
    package init(share: Int, _ fit: Fit, hasRoom: @escaping @Sendable (Source) -> Void = { _ in }) {
        state = Mutex(State(limit: share))
        self.fit = fit
        self.hasRoom = hasRoom
    }

    package var count: Int { state.withLock(\.shares.count) }
    package var isClosed: Bool { state.withLock(\.isClosed) }
    /// Bytes of one source's items that wait.
    package func bytes(of source: Source) -> Int { state.withLock { $0.shares.bytes(of: source) } }

    /// Changes the share of each source. Items that already wait stay.
    package func setShare(_ bytes: Int) {
        let waiting = state.withLock { state -> [Waiter] in
            guard state.limit != bytes else { return [] }
            state.limit = bytes
            return state.takePutters()
        }
        for one in waiting { one.resume() }
    }

    // MARK: Putting

    /// Puts an item into its source's share, once there is room.
    ///
    /// - Parameter bytes: of memory that it takes, or somewhat more.
    /// - Returns: whether it was taken; not when the queue closed or the task was cancelled meanwhile.
    package func put(_ item: Item, bytes: Int, of source: Source) async -> Bool {
        while !Task.isCancelled {
            let (isTaken, isClosed, taker) = state.withLock { state -> (Bool, Bool, Waiter?) in
                guard !state.isClosed, fits(bytes, of: source, state) else {
                    return (false, state.isClosed, nil)
                }
                state.shares.append(item, bytes: bytes, of: source)
                return (true, false, state.takers.popFirst())
            }
            taker?.resume()
            if isTaken { return true }
            if isClosed { return false }
            await waitForRoom(bytes, of: source)
        }
        return false
    }

    /// Whether the source's share has room. If not, the caller is told when it has.
    package func takes(from source: Source) -> Bool {
        state.withLock { state in
            guard state.shares.bytes(of: source) >= state.limit else { return true }
            state.awaited.insert(source)
            return false
        }
    }

    /// Puts an item into its source's share, for a caller that cannot wait and has asked ``takes(from:)``.
    package func add(_ item: Item, bytes: Int, of source: Source) {
        let taker = state.withLock { state -> Waiter? in
            guard !state.isClosed else { return nil }
            state.shares.append(item, bytes: bytes, of: source)
            return state.takers.popFirst()
        }
        taker?.resume()
    }

    // MARK: Taking

    /// The next item in turn; `nil` when the queue is closed and empty.
    package func take() async -> Item? {
        while true {
            let (next, isOver, putters, isAwaited) = state.withLock { state in pop(&state) }
            for one in putters { one.resume() }
            if isAwaited, let next { hasRoom(next.key) }
            if let next { return next.item }
            if isOver { return nil }
            await waitForItem()
        }
    }

    /// Takes no more items; those that are there are still handed out, unless they are dropped.
    package func close(dropping: Bool = false) {
        let waiting = state.withLock { state in
            state.isClosed = true
            if dropping { state.shares = FairShares() }
            var waiting = state.takePutters()
            while let taker = state.takers.popFirst() { waiting.append(taker) }
            return waiting
        }
        for one in waiting { one.resume() }
    }

    // MARK: Inside

    private func fits(_ bytes: Int, of source: Source, _ state: borrowing State) -> Bool {
        let taken = state.shares.bytes(of: source)
        return switch fit {
        case .whole: taken == 0 || taken + bytes <= state.limit
        case .overrun: taken < state.limit
        }
    }

    private func pop(
        _ state: inout State
    ) -> (next: (key: Source, item: Item)?, isOver: Bool, putters: [Waiter], isAwaited: Bool) {
        guard let next = state.shares.pop() else { return (nil, state.isClosed, [], false) }
        guard fit == .whole || state.shares.bytes(of: next.key) <= state.limit / 2 else {
            return (next, false, [], false)
        }
        // Nearly always nobody waits.
        let putters = state.putters.isEmpty ? [] : state.putters.removeValue(forKey: next.key) ?? []
        let isAwaited = !state.awaited.isEmpty && state.awaited.remove(next.key) != nil
        return (next, false, putters, isAwaited)
    }

    private func waitForRoom(_ bytes: Int, of source: Source) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (putter: Waiter) in
                let goesOn = state.withLock { state -> Bool in
                    if state.isClosed || Task.isCancelled || fits(bytes, of: source, state) { return true }
                    state.putters[source, default: []].append(putter)
                    return false
                }
                if goesOn { putter.resume() }
            }
        } onCancel: {
            // Others who read the same source look again, and wait on.
            let putters = state.withLock { $0.putters.removeValue(forKey: source) } ?? []
            for one in putters { one.resume() }
        }
    }

    private func waitForItem() async {
        await withCheckedContinuation { (taker: Waiter) in
            let goesOn = state.withLock { state -> Bool in
                if state.isClosed || !state.shares.isEmpty { return true }
                state.takers.append(taker)
                return false
            }
            if goesOn { taker.resume() }
        }
    }
}
