import CWiping
import Dispatch

/// Runs tasks on threads of Dispatch's pool: what takes longer than an event loop may be held up.
///
/// A thread wipes its stack behind each job. What a function had in a register is saved there, and on
/// processors with registers of 64 bytes that is a whole key of secp256k1, which would stay until the thread
/// goes as deep again (decision 0008). Behind each, because nobody hears when a thread has found nothing more
/// to run. The language's own executor of that pool has no end of a job to do this at.
package final class PoolExecutor: TaskExecutor {
    package static let shared = PoolExecutor()

    private init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let isUrgent = job.priority.rawValue > JobPriority(TaskPriority.utility).rawValue
        let job = UnownedJob(job)
        DispatchQueue.global(qos: isUrgent ? .default : .utility).async {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
            sealbell_wipe_stack_of_job()
        }
    }
}
