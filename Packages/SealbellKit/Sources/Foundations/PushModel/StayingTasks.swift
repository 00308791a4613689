/// Decides which tasks stay without work, where each piece of work gets its own task at once (decision 0017).
///
/// A task that has done one piece stays for the next only if enough pieces were under way at once a moment
/// ago. So under load few tasks are made, each of which costs its memory, wiping that memory, and the code
/// that makes it. With little to do no task stays, because what a piece left in its task's memory is wiped
/// with the task.
///
/// A value, changed under its holder's lock; tasks that are taken out are resumed after it.
package struct StayingTasks: Sendable {
    /// Waits for more work; `false`: the task ends.
    package typealias Waiting = LockedContinuation<Bool>

    /// Pieces that must have been under way at once before a task without one stays.
    private static let leastBusy = 4

    /// Without work; the last that came goes first.
    private var parked: [Waiting] = []
    /// How many of the first of them were not needed since the last look.
    private var unneeded = 0
    /// Pieces that are with a task.
    private var busy = 0
    /// As many as there were at once since the last look, and between that and the one before: what is asked
    /// for together often ends together.
    private var most = (now: 0, before: 0)
    private let limit: Int
    package private(set) var isClosed = false

    /// - Parameter limit: tasks that may stay at the very most.
    package init(limit: Int) { self.limit = limit }

    package var count: Int { parked.count }
    /// Whether looks change nothing any more, until work comes: for too few at once no task stays anyhow.
    package var isAtRest: Bool { busy == 0 && parked.isEmpty && max(most.now, most.before) < Self.leastBusy }

    private var mayStay: Int { isClosed || max(most.now, most.before) < Self.leastBusy ? 0 : limit }

    /// A piece of work goes to a task.
    package mutating func begin() {
        busy += 1
        most.now = max(most.now, busy)
    }

    /// A task that stays, for the piece that has just begun or is about to; `nil`: none does.
    package mutating func take() -> Waiting? {
        guard let found = parked.popLast() else { return nil }
        unneeded = min(unneeded, parked.count)
        return found
    }

    /// A piece of work is done.
    package mutating func end() { busy -= 1 }

    /// A task has nothing to do.
    ///
    /// - Returns: whether it stays, and those that stay no longer.
    package mutating func stay(_ own: Waiting) -> (stays: Bool, surplus: [Waiting]) {
        if parked.count < mayStay {
            parked.append(own)
            return (true, [])
        }
        return (false, takeOut(parked.count - mayStay))
    }

    /// No task stays from now on.
    package mutating func close() -> [Waiting] {
        isClosed = true
        return takeOut(parked.count)
    }

    /// A look at what stays, to be taken regularly.
    ///
    /// - Returns: tasks that have stayed since the last one without being needed, and all where too few
    ///   pieces were under way at once. Others may be under way for minutes.
    package mutating func look() -> [Waiting] {
        most = (busy, most.now)
        let ended = takeOut(max(unneeded, parked.count - mayStay))
        unneeded = parked.count
        return ended
    }

    /// Takes out those that have stayed longest.
    private mutating func takeOut(_ count: Int) -> [Waiting] {
        guard count > 0 else { return [] }
        let ended = Array(parked.prefix(count))
        parked.removeFirst(count)
        unneeded = max(0, unneeded - count)
        return ended
    }
}
