import MarmotPush
import NIOCore
import PushModel
import Synchronization

/// The state that the connections of one simulated relay share.
final class NostrRelayHub: Sendable {
    /// Further connections are refused: each has buffers of its own.
    static let connectionLimit = 1024

    private struct State {
        var store: NostrEventStore
        var knobs: NostrRelayKnobs
        var counters = NostrRelayCounters()
        var connections: [ObjectIdentifier: NostrRelayConnection] = [:]
        var isStopped = false
        /// How many events were accepted so far, kept or not.
        var taken: UInt64 = 0
    }

    let configuration: NostrRelayConfiguration
    let world: World
    private let state: Mutex<State>
    private let readers = NoteReaders<NostrRelayNote>(ahead: 4_096)

    init(_ configuration: NostrRelayConfiguration, world: World) {
        self.configuration = configuration
        self.world = world
        state = Mutex(
            State(
                store: NostrEventStore(
                    events: configuration.storedEvents, bytes: configuration.storedBytes),
                knobs: configuration.knobs))
    }

    var knobs: NostrRelayKnobs { state.withLock { $0.knobs } }
    var counters: NostrRelayCounters { state.withLock { $0.counters } }
    var stored: [NostrEvent] { state.withLock { $0.store.all } }
    var connections: [NostrRelayConnection] { state.withLock { Array($0.connections.values) } }
    var connectionCount: Int { state.withLock { $0.connections.count } }

    func turn(_ change: (inout NostrRelayKnobs) -> Void) {
        state.withLock { change(&$0.knobs) }
        for connection in connections { connection.turned() }
    }

    func forget() { state.withLock { $0.store.removeAll() } }

    func count(_ change: (inout NostrRelayCounters) -> Void) { state.withLock { change(&$0.counters) } }

    /// False when there are too many.
    func add(_ connection: NostrRelayConnection) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isStopped, state.connections.count < Self.connectionLimit else { return false }
            state.connections[ObjectIdentifier(connection)] = connection
            state.counters.connections += 1
            return true
        }
        if isTaken { note(.connected) }
        return isTaken
    }

    func remove(_ connection: NostrRelayConnection) {
        let id = ObjectIdentifier(connection)
        let wasHere = state.withLock { $0.connections.removeValue(forKey: id) != nil }
        if wasHere { note(.disconnected) }
    }

    /// Keeps an event by the store's rules.
    ///
    /// - Returns: the event with its number among all accepted ones.
    func take(_ event: NostrEvent, text: ByteBuffer) -> (answer: NostrEventStore.Answer, number: UInt64) {
        state.withLock { state in
            state.taken += 1
            return (state.store.take(event, text: text), state.taken)
        }
    }

    /// Passes an event on to every connection, which decides by itself whether somebody asked for it.
    func spread(_ event: NostrEvent, text: ByteBuffer, number: UInt64) {
        guard !knobs.spreadsNothing else { return }
        for connection in connections { connection.offer(event, text: text, number: number) }
    }

    /// The kept events that match, and how many had been accepted by then: later ones are live.
    func matching(
        _ filters: [NostrFilter], _ knobs: NostrRelayKnobs
    ) -> (stored: [NostrEventStore.Stored], taken: UInt64) {
        let limit = configuration.eventsOfRequest
        return state.withLock { state in
            let stored = state.store.matching(
                filters, limit: limit, whateverFilter: knobs.lies.contains(.wrongFilter))
            return (stored, state.taken)
        }
    }

    // MARK: Notes

    func note(_ note: NostrRelayNote) {
        let lost = readers.tell(note)
        if lost > 0 { count { $0.unheard += lost } }
    }

    /// Everything from now on; ends with the relay.
    func notes() -> AsyncStream<NostrRelayNote> { readers.stream() }

    /// Accepts no more connections, and ends the open ones and all notes.
    func stop() {
        let connections = state.withLock { state in
            state.isStopped = true
            return Array(state.connections.values)
        }
        for connection in connections { connection.end(nil) }
        readers.finish()
    }
}
