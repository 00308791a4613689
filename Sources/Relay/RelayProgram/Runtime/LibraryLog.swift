import Logging
import PushModel
import Synchronization

/// What the libraries below us log. Their messages may hold addresses, URLs and worse, so none is passed
/// on: a warning or an error becomes a count under a fixed name, at most once a minute.
struct LibraryLog: LogHandler {
    /// How many went unsaid, and when something was said last.
    private final class Tally: Sendable {
        let state = Mutex<(said: ContinuousClock.Instant?, count: Int)>((nil, 0))
    }

    private let journal: Journal
    private let instant: @Sendable () -> ContinuousClock.Instant
    private let tally = Tally()
    /// Below `warning` there is nothing for an operator in a foreign message.
    var logLevel: Logger.Level = .warning
    /// Taken and never read.
    var metadata: Logger.Metadata = [:]

    init(_ journal: Journal, instant: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.journal = journal
        self.instant = instant
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        guard event.level >= .warning else { return }
        let now = instant()
        let count: Int? = tally.state.withLock { state in
            state.count += 1
            if let said = state.said, now - said < .seconds(60) { return nil }
            defer { state = (now, 0) }
            return state.count
        }
        guard let count else { return }
        journal.note("library.complains", [.count: count], level: .warning)
    }

    /// Makes this the end of every library's log. Once in a process, at its entry.
    static func install(_ journal: Journal, _ world: World) {
        let log = LibraryLog(journal, instant: world.instant)
        LoggingSystem.bootstrap { _ in log }
    }
}
