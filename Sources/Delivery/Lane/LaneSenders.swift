import PushModel
import Synchronization

/// The tasks that send a lane's pushes, each push at once, whatever the others wait for. A task that has sent
/// a push stays for the next by the rule of ``StayingTasks``; it releases the push before it stays.
final class LaneSenders: Sendable {
    typealias Work = @Sendable () async -> Void

    /// A structure: a bare function is wrapped anew, in a block of memory and at each of its waits, when a
    /// generic type takes or returns it.
    private struct Given {
        let work: Work
    }

    private struct State {
        /// Each entry is for one task that was made or woken for it and has not run since. At most as many as
        /// the lane has streams.
        var given = Fifo<Given>()
        /// Two megabytes, and never more than were under way at once: a commit brings hundreds of pushes,
        /// and their answers come together too.
        var staying = StayingTasks(limit: 512)
        var lookedAt: ContinuousClock.Instant?
        /// Tasks since the beginning.
        var made = 0
    }

    /// Between two looks at the tasks that stay. Groups are written to every few seconds, and push services
    /// take as long to answer when they are busy: tasks that ended between two bursts would be made anew for
    /// each. They hold 6 KB each, and are held no longer than twice this.
    private static let lookEvery = Duration.seconds(5)

    private let state = Mutex(State())

    /// Tasks that stay, and tasks that were ever made.
    var tasks: (parked: Int, made: Int) { state.withLock { ($0.staying.count, $0.made) } }

    /// Whether no task stays or sends, and none may after two more looks.
    var isAtRest: Bool { state.withLock { $0.given.isEmpty && $0.staying.isAtRest } }

    /// Gives a push to a task that stays.
    ///
    /// - Returns: false when there is none: then the caller makes one that does ``work()``.
    func give(_ work: @escaping Work) -> Bool {
        let worker = state.withLock { state in
            state.staying.begin()
            state.given.append(Given(work: work))
            let worker = state.staying.take()
            if worker == nil { state.made += 1 }
            return worker
        }
        worker?.resume(returning: true)
        return worker != nil
    }

    /// The work of a task that was made for a push: it sends this push, and others as long as it may stay.
    func work() async {
        repeat { await workOnce() } while await goesOn()
    }

    /// Nothing more is given. What was given is done, and no task stays.
    func close() {
        for worker in state.withLock({ $0.staying.close() }) { worker.resume(returning: false) }
    }

    /// Ends tasks that have stayed in vain (``StayingTasks/look()``), if the last look was long enough ago.
    /// To be called at each tick.
    func endUnneeded(at instant: ContinuousClock.Instant) {
        let ended = state.withLock { state -> [StayingTasks.Waiting] in
            if let last = state.lookedAt, instant - last < Self.lookEvery { return [] }
            state.lookedAt = instant
            return state.staying.look()
        }
        for worker in ended { worker.resume(returning: false) }
    }

    // MARK: The tasks

    /// A separate function, so that nothing of the push is held while the task stays.
    private func workOnce() async {
        guard let given = state.withLock({ $0.given.popFirst() }) else { return }
        await given.work()
    }

    private func goesOn() async -> Bool {
        await withLockedContinuation { own in
            let (stays, surplus) = state.withLock { state in
                state.staying.end()
                return state.staying.stay(own)
            }
            for worker in surplus { worker.resume(returning: false) }
            if !stays { own.resume(returning: false) }
        }
    }
}
