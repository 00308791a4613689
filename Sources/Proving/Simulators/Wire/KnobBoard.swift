import NIOCore
import Synchronization

/// The knobs of one simulator, and the connections that hear of their changes.
final class KnobBoard: Sendable {
    /// To every connection: read the knobs again.
    struct Turned: Sendable {}
    /// To every connection: end now, in this way.
    enum End: Sendable {
        case goAway(GoAwayKnob)
        case kill
    }

    /// The most open connections; further ones are closed at once, because each has buffers of its own.
    static let connectionLimit = 1024

    private let state: Mutex<State>

    private struct State {
        var knobs: ConnectionKnobs
        /// How often each of the prepared answers was given.
        var given: [Int] = []
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    init(_ knobs: ConnectionKnobs) { state = Mutex(State(knobs: knobs)) }

    var knobs: ConnectionKnobs { state.withLock { $0.knobs } }
    var connections: Int { state.withLock { $0.channels.count } }

    func turn(_ change: (inout ConnectionKnobs) -> Void) {
        let channels = state.withLock { state in
            let answers = state.knobs.answers
            change(&state.knobs)
            if state.knobs.answers != answers { state.given = [] }
            return Array(state.channels.values)
        }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(Turned()) }
    }

    func end(_ end: End) { tell(end) }
    func lapse(_ lapse: ConnectionLapse) { tell(lapse) }

    private func tell(_ event: some Sendable) {
        let channels = state.withLock { Array($0.channels.values) }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(event) }
    }

    /// The prepared answer for a request that comes now; it is counted as given.
    func takeAnswer() -> PreparedAnswer? {
        state.withLock { state in
            let answers = state.knobs.answers.prefix(16)
            if state.given.count < answers.count {
                state.given += Array(repeating: 0, count: answers.count - state.given.count)
            }
            let given = state.given
            let index = answers.indices.first { index in
                answers[index].times.map { given[index] < $0 } ?? true
            }
            guard let index else { return nil }
            state.given[index] += 1
            return answers[index]
        }
    }

    /// False if there are too many.
    func add(_ channel: any Channel) -> Bool {
        state.withLock { state in
            guard state.channels.count < Self.connectionLimit else { return false }
            state.channels[ObjectIdentifier(channel)] = channel
            return true
        }
    }

    func remove(_ channel: any Channel) {
        state.withLock { _ = $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
    }

    /// Closes all connections, for the end of a simulator.
    func closeAll() {
        let channels = state.withLock { Array($0.channels.values) }
        for channel in channels { channel.close(mode: .all, promise: nil) }
    }
}
