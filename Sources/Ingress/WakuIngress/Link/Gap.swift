import PushModel
import Synchronization

/// The messages that were missed and are still to be fetched: all since a moment.
final class Gap: Sendable {
    private struct State {
        var since: UnixTime?
        var isBeingFetched = false
    }

    private let state = Mutex(State())
    private let bell = Bell()

    /// Whether missed messages have not been fetched yet.
    var isOpen: Bool { state.withLock { $0.since != nil || $0.isBeingFetched } }

    /// Messages may have been missed since then.
    func open(since: UnixTime) {
        state.withLock { $0.since = min($0.since ?? since, since) }
        bell.ring()
    }

    /// The gap that was taken has been fetched, or given up.
    func close() { state.withLock { $0.isBeingFetched = false } }

    /// Waits for a gap and takes it: messages that are missed from now on make a new one.
    ///
    /// - Returns: `nil` when the task was cancelled.
    func next() async -> UnixTime? {
        while !Task.isCancelled {
            let since = state.withLock { state in
                defer { state.since = nil }
                state.isBeingFetched = state.since != nil
                return state.since
            }
            if let since { return since }
            await bell.wait()
        }
        return nil
    }
}
