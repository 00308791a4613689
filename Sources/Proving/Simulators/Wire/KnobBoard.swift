import NIOCore
import Synchronization

/// Where the knobs of one simulator stand, and which connections are to hear when they are turned.
final class KnobBoard: Sendable {
    /// To every connection: read the knobs again.
    struct Turned: Sendable {}
    /// To every connection: end now, in this way.
    enum End: Sendable {
        case goAway(GoAwayKnob)
        case kill
    }

    /// More open connections than this are closed as they come: each holds buffers of its own.
    static let connectionLimit = 1024

    private let state: Mutex<State>

    private struct State {
        var knobs: ConnectionKnobs
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    init(_ knobs: ConnectionKnobs) { state = Mutex(State(knobs: knobs)) }

    var knobs: ConnectionKnobs { state.withLock { $0.knobs } }
    var connections: Int { state.withLock { $0.channels.count } }

    func turn(_ change: (inout ConnectionKnobs) -> Void) {
        let channels = state.withLock { state in
            change(&state.knobs)
            return Array(state.channels.values)
        }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(Turned()) }
    }

    func end(_ end: End) {
        let channels = state.withLock { Array($0.channels.values) }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(end) }
    }

    /// False when there are too many.
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

    /// Closes what is open; for the end of a simulator.
    func closeAll() {
        let channels = state.withLock { Array($0.channels.values) }
        for channel in channels { channel.close(mode: .all, promise: nil) }
    }
}
