import CZeroMQ
import PushModel

/// What happens to a socket's connections.
package final class SocketMonitor {
    package enum Event: Sendable, Hashable {
        /// The other side has proven its key: from now on messages go out.
        case ready
        /// The connection, or the attempt to make one, has ended.
        case ended
        /// Keys or protocol do not fit.
        case refused
    }

    static let events =
        ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED
        | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
        | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH

    private let socket: MessageSocket
    private let watched: MessageSocket

    /// - Parameters:
    ///   - socket: hears the events.
    ///   - watched: is what they are about.
    init(_ socket: MessageSocket, of watched: MessageSocket) {
        self.socket = socket
        self.watched = watched
    }

    deinit { close() }

    package var descriptor: Int32 { socket.descriptor }

    /// The library sends each event with a call that waits until somebody can hear it. So the events end
    /// before their reader does: one event without a reader would hold up the thread of all the context's
    /// connections for good (libzmq 4.3, `socket_base_t::monitor_event`).
    package func close() {
        watched.endMonitor()
        socket.close()
    }

    /// The next event; `nil`: none is there.
    package func next() -> Event? {
        // Ends: each round takes one of the messages that are there.
        while let message = socket.receive(framesAtMost: 2) {
            if let event = message.frames.first?.reveal(Self.event) { return event }
        }
        return nil
    }

    /// Sixteen bits of event, and a value of 32 (zmq_socket_monitor(3)).
    private static func event(_ frame: UnsafeRawBufferPointer) -> Event? {
        guard frame.count >= 6 else { return nil }
        switch Int32(frame.loadUnaligned(as: UInt16.self)) {
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return .ready
        case ZMQ_EVENT_DISCONNECTED, ZMQ_EVENT_CLOSED: return .ended
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL,
            ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
            return .refused
        default: return nil
        }
    }
}
