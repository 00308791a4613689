import PushModel
import Synchronization

/// A bounded queue from an event loop, and the tasks that serve what comes: each element at once, whatever
/// the others wait for.
///
/// A task that has served one element takes the next that waits. If none does, it stays for one only where
/// enough were being served at once a moment ago: a loop with much to do makes few tasks, and each costs its
/// memory, the wiping of that and a way through the starter. A loop with little to do keeps none, because
/// what a request left in its task's memory is wiped with the task. An element is out of its task's hands
/// before the task stays.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        /// Not given to any task yet.
        var waiting: [Element] = []
        /// Each for one task that was made or woken for it and has not run since.
        var given: [Element] = []
        /// Makes tasks for what waits.
        var starter: LockedContinuation<Bool>?
        /// Tasks without an element; who came last goes first.
        var parked: [LockedContinuation<Bool>] = []
        /// How many of the first of them nobody has needed since they were last looked at.
        var unneeded = 0
        /// Elements that are with a task.
        var busy = 0
        /// As many as there were at once since the last look, and between that and the one before: what is
        /// asked for together often ends together.
        var most = (now: 0, before: 0)
        var isClosed = false
        /// Tasks since the beginning.
        var made = 0

        /// How many may stay.
        var mayPark: Int { isClosed || max(most.now, most.before) < leastBusy ? 0 : mostParked }

        mutating func give(_ element: Element) {
            busy += 1
            most.now = max(most.now, busy)
            given.append(element)
        }

        /// An element was served.
        ///
        /// - Returns: whether its task goes on with another; `nil`: it stays. And those that stay no longer.
        mutating func end(
            _ own: LockedContinuation<Bool>
        ) -> (goesOn: Bool?, surplus: [LockedContinuation<Bool>]) {
            busy -= 1
            if !waiting.isEmpty {
                give(waiting.removeFirst())
                return (true, [])
            }
            if parked.count < mayPark {
                parked.append(own)
                return (nil, [])
            }
            return (false, unpark(parked.count - mayPark))
        }

        /// Takes out those that have stayed longest.
        mutating func unpark(_ count: Int) -> [LockedContinuation<Bool>] {
            guard count > 0 else { return [] }
            let ended = Array(parked.prefix(count))
            parked.removeFirst(count)
            unneeded = max(0, unneeded - count)
            return ended
        }
    }

    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameter capacity: elements that may wait for a task.
    init(capacity: Int) { self.capacity = capacity }

    /// Tasks that stay, and tasks that were ever made.
    var tasks: (parked: Int, made: Int) { state.withLock { ($0.parked.count, $0.made) } }

    /// False when the queue is full or closed; the element is not taken then.
    func offer(_ element: Element) -> Bool {
        let (taken, woken) = state.withLock { state -> (Bool, LockedContinuation<Bool>?) in
            guard !state.isClosed, state.waiting.count < capacity else { return (false, nil) }
            if let worker = state.parked.popLast() {
                state.unneeded = min(state.unneeded, state.parked.count)
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
            state.isClosed = true
            var ended = state.unpark(state.parked.count)
            if let starter = state.starter.take() { ended.append(starter) }
            return ended
        }
        for task in ended { task.resume(returning: false) }
    }

    /// A look at what stays, to be taken regularly: ends the tasks that have stayed since the last one
    /// without being needed, and all where too few were served at once. Others may be served for minutes.
    func endUnneeded() {
        let ended = state.withLock { state in
            state.most = (state.busy, state.most.now)
            let ended = state.unpark(max(state.unneeded, state.parked.count - state.mayPark))
            state.unneeded = state.parked.count
            return ended
        }
        for worker in ended { worker.resume(returning: false) }
    }

    // MARK: The tasks

    /// - Returns: false once the mailbox is closed and empty.
    private func somethingWaits() async -> Bool {
        await withLockedContinuation { own in
            let known = state.withLock { state -> Bool? in
                if !state.waiting.isEmpty { return true }
                if state.isClosed { return false }
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

    /// A function of its own, so that nothing of the element is held while the task stays.
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

/// Elements that must have been with their tasks at once before one without an element stays.
private let leastBusy = 4
/// Tasks without an element: as many as there are requests on a loop at full load.
private let mostParked = 64
