import PushModel
import Synchronization

/// A bounded queue from an event loop, and the tasks that serve its elements: each at once, whatever the
/// others wait for.
///
/// A task that has served one element takes the next that waits. If none does, it stays for one by the rule
/// of ``StayingTasks``. A task releases its element before it stays.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        /// Not given to any task yet.
        var waiting: [Element] = []
        /// Each for one task that was made or woken for it and has not run since.
        var given: [Element] = []
        /// Makes tasks for what waits.
        var starter: StayingTasks.Waiting?
        var staying = StayingTasks(limit: mostParked)
        /// Tasks since the beginning.
        var made = 0

        mutating func give(_ element: Element) {
            staying.begin()
            given.append(element)
        }

        /// An element was served.
        ///
        /// - Returns: whether its task goes on with another; `nil`: it stays. And those that stay no longer.
        mutating func end(_ own: StayingTasks.Waiting) -> (goesOn: Bool?, surplus: [StayingTasks.Waiting]) {
            staying.end()
            if !waiting.isEmpty {
                give(waiting.removeFirst())
                return (true, [])
            }
            let (stays, surplus) = staying.stay(own)
            return (stays ? nil : false, surplus)
        }
    }

    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameter capacity: elements that may wait for a task.
    init(capacity: Int) { self.capacity = capacity }

    /// Tasks that stay, and tasks that were ever made.
    var tasks: (parked: Int, made: Int) { state.withLock { ($0.staying.count, $0.made) } }

    /// Whether nothing waits or is served, and no task stays or would.
    var isAtRest: Bool {
        state.withLock { $0.waiting.isEmpty && $0.given.isEmpty && $0.staying.isAtRest }
    }

    /// False when the queue is full or closed; the element is not taken then.
    func offer(_ element: Element) -> Bool {
        let (taken, woken) = state.withLock { state -> (Bool, StayingTasks.Waiting?) in
            guard !state.staying.isClosed, state.waiting.count < capacity else { return (false, nil) }
            if let worker = state.staying.take() {
                state.give(element)
                return (true, worker)
            }
            state.waiting.append(element)
            return (true, state.starter.take())
        }
        woken?.resume(returning: true)
        return taken
    }

    /// Serves what comes until the mailbox is closed, and returns when all of it is served. Once only.
    func serveAll(_ serve: @escaping @Sendable (Element) async -> Void) async {
        await withDiscardingTaskGroup { workers in
            while await somethingWaits() {
                for _ in 0..<giveAll() { workers.addTask { await self.work(serve) } }
            }
        }
    }

    /// What waits may still be taken; nothing more is.
    func close() {
        let ended = state.withLock { state in
            var ended = state.staying.close()
            if let starter = state.starter.take() { ended.append(starter) }
            return ended
        }
        for task in ended { task.resume(returning: false) }
    }

    /// Ends tasks that have stayed in vain (``StayingTasks/look()``).
    func endUnneeded() {
        for worker in state.withLock({ $0.staying.look() }) { worker.resume(returning: false) }
    }

    // MARK: The tasks

    /// - Returns: false once the mailbox is closed and empty.
    private func somethingWaits() async -> Bool {
        await withLockedContinuation { own in
            let known = state.withLock { state -> Bool? in
                if !state.waiting.isEmpty { return true }
                if state.staying.isClosed { return false }
                precondition(state.starter == nil, "a mailbox is served once")
                state.starter = own
                return nil
            }
            if let known { own.resume(returning: known) }
        }
    }

    /// - Returns: how many tasks are to be made.
    private func giveAll() -> Int {
        state.withLock { state in
            let count = state.waiting.count
            for element in state.waiting { state.give(element) }
            state.waiting.removeAll(keepingCapacity: count <= mostParked)
            state.made += count
            return count
        }
    }

    private func work(_ serve: @Sendable (Element) async -> Void) async {
        repeat { await serveOne(serve) } while await goesOn()
    }

    /// A separate function, so that nothing of the element is held while the task stays.
    private func serveOne(_ serve: @Sendable (Element) async -> Void) async {
        await serve(state.withLock { $0.given.removeFirst() })
    }

    private func goesOn() async -> Bool {
        await withLockedContinuation { own in
            let (goesOn, surplus) = state.withLock { $0.end(own) }
            for worker in surplus { worker.resume(returning: false) }
            if let goesOn { own.resume(returning: goesOn) }
        }
    }
}

/// Tasks without an element: as many as there are requests on a loop at full load, of 256 connections on two.
private let mostParked = 128
