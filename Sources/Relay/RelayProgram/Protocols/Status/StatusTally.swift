import PushModel
import Synchronization

/// What an instance has counted since the process began, for its statistics. It outlives a reload.
final class StatusTally: Sendable {
    struct Counts: Sendable, Hashable {
        var registered = 0
        var unregistered = 0
        /// Queries that were answered.
        var queries = 0
        /// Requests that were taken, and those of which nobody wanted anything.
        var requests = 0
    }

    let began: ContinuousClock.Instant
    private let counts = Mutex(Counts())

    init(began: ContinuousClock.Instant) { self.began = began }

    var all: Counts { counts.withLock(\.self) }

    /// Reads what the role notes.
    func count(_ note: NoteCode) {
        counts.withLock { counts in
            switch note.text {
            case "status.registered": counts.registered += 1
            case "status.unregistered": counts.unregistered += 1
            case "status.query": counts.queries += 1
            case "status.request", "status.request-unwanted": counts.requests += 1
            default: break
            }
        }
    }
}
