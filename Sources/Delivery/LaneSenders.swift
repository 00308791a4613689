import PushModel
import Synchronization

/// The tasks that send a lane's pushes, each at once, whatever the others wait for.
///
/// A task that has sent one push stays for the next where enough were under way at once a moment ago, as the
/// tasks of requests do (decision 0017): making one, its memory and the wiping of that cost more than the
/// rest of the lane. A lane with little to do keeps none, because what a push left in its task's memory is
/// wiped with the task. A push is out of its task's hands before the task stays.
final class LaneSenders: Sendable {
    typealias Work = @Sendable () async -> Void

    private struct State {
        /// Each for one task that was made or woken for it and has not run since. No more than the lane has
        /// streams for.
        var given = Fifo<Work>()
        /// Tasks without a push; who came last goes first.
        var parked: [LockedContinuation<Bool>] = []
        /// How many of the first of them nobody has needed since they were last looked at.
        var unneeded = 0
        /// Pushes that are with a task.
        var busy = 0
        /// As many as there were at once since the last look, and between that and the one before: what is
        /// sent together often ends together.
        var most = (now: 0, before: 0)
        var isClosed = false
        /// Tasks since the beginning.
        var made = 0

        /// How many may stay.
        var mayPark: Int { isClosed || max(most.now, most.before) < leastBusy ? 0 : mostParked }

        /// A push was sent.
        ///
        /// - Returns: whether its task stays, and those that stay no longer.
        mutating func end(
            _ own: LockedContinuation<Bool>
        ) -> (stays: Bool, surplus: [LockedContinuation<Bool>]) {
            busy -= 1
            if parked.count < mayPark {
                parked.append(own)
                return (true, [])
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

    private let state = Mutex(State())

    /// Tasks that stay, and tasks that were ever made.
    var tasks: (parked: Int, made: Int) { state.withLock { ($0.parked.count, $0.made) } }

    /// Gives a push to a task that stays.
    ///
    /// - Returns: false when there is none: then the caller makes one that does ``work()``.
    func give(_ work: @escaping Work) -> Bool {
        let (isWoken, worker) = state.withLock { state -> (Bool, LockedContinuation<Bool>?) in
            state.busy += 1
            state.most.now = max(state.most.now, state.busy)
            state.given.append(work)
            guard let worker = state.parked.popLast() else {
                state.made += 1
                return (false, nil)
            }
            state.unneeded = min(state.unneeded, state.parked.count)
            return (true, worker)
        }
        worker?.resume(returning: true)
        return isWoken
    }

    /// What a task does that was made for a push: that one, and others as long as it may stay.
    func work() async {
        repeat { await workOnce() } while await goesOn()
    }

    /// Nothing more is given. What was given is done, and no task stays.
    func close() {
        let ended = state.withLock { state in
            state.isClosed = true
            return state.unpark(state.parked.count)
        }
        for worker in ended { worker.resume(returning: false) }
    }

    /// A look at what stays, to be taken regularly: ends the tasks that have stayed since the last one
    /// without being needed, and all where too few pushes were under way at once. Others may be waited for
    /// long.
    func endUnneeded() {
        let ended = state.withLock { state -> [LockedContinuation<Bool>] in
            state.most = (state.busy, state.most.now)
            let ended = state.unpark(max(state.unneeded, state.parked.count - state.mayPark))
            state.unneeded = state.parked.count
            return ended
        }
        for worker in ended { worker.resume(returning: false) }
    }

    // MARK: The tasks

    /// A function of its own, so that nothing of the push is held while the task stays.
    private func workOnce() async {
        guard let work = state.withLock({ $0.given.popFirst() }) else { return }
        await work()
    }

    private func goesOn() async -> Bool {
        await withLockedContinuation { own in
            let (stays, surplus) = state.withLock { $0.end(own) }
            for worker in surplus { worker.resume(returning: false) }
            if !stays { own.resume(returning: false) }
        }
    }
}

/// Pushes that must have been under way at once before a task without one stays.
private let leastBusy = 4
/// Tasks without a push, of one lane: half a megabyte.
private let mostParked = 128
