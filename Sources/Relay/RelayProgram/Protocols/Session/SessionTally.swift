import PushModel
import Synchronization

/// What an instance has counted since the process began, for its statistics. It outlives a reload.
final class SessionTally: Sendable {
    struct Counts: Sendable, Hashable {
        var subscribed = 0
        var renewed = 0
        var unsubscribed = 0
        /// Messages that some subscription wanted.
        var notified = 0
    }

    let began: ContinuousClock.Instant
    private let counts = Mutex(Counts())

    init(began: ContinuousClock.Instant) { self.began = began }

    var all: Counts { counts.withLock(\.self) }

    /// Reads what the role notes.
    func count(_ note: NoteCode) {
        counts.withLock { counts in
            switch note.text {
            case "session.subscribed": counts.subscribed += 1
            case "session.renewed": counts.renewed += 1
            case "session.unsubscribed": counts.unsubscribed += 1
            case "session.notified": counts.notified += 1
            default: break
            }
        }
    }
}
