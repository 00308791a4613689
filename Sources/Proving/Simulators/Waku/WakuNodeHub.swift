import PushModel
import Synchronization

/// The state that the connections of one simulated node share: its subscriptions, messages that nobody has
/// polled yet, and its knobs.
final class WakuNodeHub: Sendable {
    /// How many topics clients may subscribe to at a node.
    private static let topicLimit = 64

    private struct State {
        var topics: Set<String> = []
        var cache: [(topic: String, message: SimulatedWakuMessage)] = []
        var knobs: WakuNodeKnobs
        var counters = SimulatorCounters()
        var heard = 0
        /// It is stopped and receives nothing.
        var isAway = true
    }

    let network: WakuNetworkSimulator
    private let state: Mutex<State>
    private let readers = NoteReaders<WakuNodeNote>(ahead: 65_536)

    init(_ network: WakuNetworkSimulator, _ knobs: WakuNodeKnobs) {
        self.network = network
        state = Mutex(State(knobs: knobs))
    }

    var knobs: WakuNodeKnobs { state.withLock(\.knobs) }
    var counters: SimulatorCounters { state.withLock(\.counters) }
    var isSubscribed: Bool { state.withLock { !$0.topics.isEmpty } }
    var waiting: Int { state.withLock(\.cache.count) }

    func turn(_ change: (inout WakuNodeKnobs) -> Void) { state.withLock { change(&$0.knobs) } }

    /// Begins to receive.
    func start() {
        state.withLock { $0.isAway = false }
        network.join(self)
    }

    /// Receives nothing more, and forgets everything in memory.
    func stop() {
        network.leave(self)
        state.withLock { state in
            (state.isAway, state.topics, state.cache) = (true, [], [])
        }
    }

    /// Loses its subscriptions and waiting messages, and goes on.
    func forget() { state.withLock { ($0.topics, $0.cache) = ([], []) } }

    // MARK: Messages

    /// A message from the network, including its own. Without peers nothing comes.
    func hear(_ message: SimulatedWakuMessage, on topic: String) {
        state.withLock { state in
            guard !state.isAway, state.knobs.peers != .none, state.topics.contains(topic) else { return }
            state.heard += 1
            if state.knobs.losesEvery > 0, state.heard.isMultiple(of: state.knobs.losesEvery) { return }
            let isThere = state.cache.contains {
                $0.message.timestamp == message.timestamp && $0.topic == topic && $0.message == message
            }
            if isThere { return }
            while state.cache.count >= max(1, state.knobs.cacheMessages) {
                // The one with the oldest date is dropped.
                let oldest = state.cache.indices.min {
                    state.cache[$0].message.timestamp < state.cache[$1].message.timestamp
                }
                state.cache.remove(at: oldest ?? 0)
            }
            state.cache.append((topic, message))
        }
    }

    /// The messages since the last poll; `nil` if it does not listen on the topic.
    func drain(_ topic: String) -> [SimulatedWakuMessage]? {
        state.withLock { state in
            guard state.topics.contains(topic) else { return nil }
            let messages = state.cache.filter { $0.topic == topic }.map(\.message)
            state.cache.removeAll { $0.topic == topic }
            return messages
        }
    }

    /// False if there are too many.
    func subscribe(_ topics: [String]) -> Bool {
        state.withLock { state in
            guard state.topics.union(topics).count <= Self.topicLimit else { return false }
            state.topics.formUnion(topics)
            return true
        }
    }

    func unsubscribe(_ topics: [String]) {
        state.withLock { state in
            state.topics.subtract(topics)
            state.cache.removeAll { topics.contains($0.topic) }
        }
    }

    func listens(on topic: String) -> Bool { state.withLock { $0.topics.contains(topic) } }

    // MARK: Notes

    func note(_ note: WakuNodeNote) { readers.tell(note) }
    func notes() -> AsyncStream<WakuNodeNote> { readers.stream() }
    func finish() { readers.finish() }

    func count(_ status: Int, isAccepted: Bool) {
        state.withLock { state in
            state.counters.received += 1
            if isAccepted { state.counters.accepted += 1 }
            if status >= 400 { state.counters.byReason[String(status), default: 0] += 1 }
        }
    }
}
