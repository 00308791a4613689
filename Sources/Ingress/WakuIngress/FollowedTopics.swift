import PushModel
import Synchronization

/// The content topics that we listen to, by the four bytes that name one (`WakuTopic.id`).
///
/// The host keeps it up to date; the ingress asks it once for each message of the shard, before anything else
/// of the message is looked at. A hundred thousand topics take one or two megabytes.
package final class FollowedTopics: Sendable {
    private struct State {
        var ids: Set<UInt32> = []
        var isKnown = false
        /// Rung when the topics are known.
        var waiting: [Bell] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var count: Int { state.withLock(\.ids.count) }

    package func contains(_ id: UInt32) -> Bool { state.withLock { $0.ids.contains(id) } }

    /// Follows these as well, from the next message on.
    package func follow(_ more: some Sequence<UInt32>) { state.withLock { $0.ids.formUnion(more) } }

    /// Follows these no longer. Topics may share an id, so the host calls it only when nobody is left on it.
    package func leave(_ gone: some Sequence<UInt32>) { state.withLock { $0.ids.subtract(gone) } }

    /// Follows these as well. With them the stored topics are complete, and the ingress begins to listen.
    /// Called once, when the store has been read.
    package func begin(with all: some Sequence<UInt32>) {
        let waiting = state.withLock { state in
            state.ids.formUnion(all)
            state.isKnown = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for bell in waiting { bell.ring() }
    }

    /// Rings once the topics are known.
    func ringWhenKnown(_ bell: Bell) {
        let isKnown = state.withLock { state in
            if !state.isKnown { state.waiting.append(bell) }
            return state.isKnown
        }
        if isKnown { bell.ring() }
    }
}
