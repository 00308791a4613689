package import NIOCore
import Synchronization

/// Runs tasks on an event loop, so that a task which talks to a connection of that loop never changes
/// threads.
///
/// Resuming from the loop on a thread of the language's own pool and back costs two wake-ups of a thread,
/// more than everything that a push does in between (`docs/decisions/0017`). Tasks that prefer this executor
/// must not block: they hold up the loop's sockets.
package final class LoopExecutor: TaskExecutor {
    package let loop: any EventLoop
    private struct State {
        // As long as tasks wait to run; each is a task that exists already, so the bound is theirs.
        var jobs: [UnownedJob] = []
        /// Empty: the room of a turn that has ended, for the jobs that come during the next one.
        var spare: [UnownedJob] = []
        /// A turn on the loop is ordered or under way.
        var hasTurn = false
    }

    private let state = Mutex(State())

    /// Jobs of one turn whose room is kept, two lists of 16 KiB at most: more of them are a burst.
    private static let keptRoom = 1_024

    package init(_ loop: any EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = state.withLock { state in
            state.jobs.append(job)
            defer { state.hasTurn = true }
            return !state.hasTurn
        }
        // Only the first of a batch wakes the loop, which costs a call into the kernel.
        if isFirst { loop.execute { self.turn() } }
    }

    /// Runs the jobs that have come so far. Later ones run after the loop's sockets have had their turn.
    private func turn() {
        var batch: [UnownedJob] = []
        state.withLock { state in
            swap(&batch, &state.jobs)
            swap(&state.jobs, &state.spare)
        }
        let executor = asUnownedTaskExecutor()
        for job in batch { job.runSynchronously(on: executor) }
        batch.removeAll(keepingCapacity: batch.count <= Self.keptRoom)
        let isMore = state.withLock { state in
            swap(&batch, &state.spare)
            state.hasTurn = !state.jobs.isEmpty
            return state.hasTurn
        }
        if isMore { loop.execute { self.turn() } }
    }
}
