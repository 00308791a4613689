import CZeroMQ
import Glibc
package import PushModel

/// One ZeroMQ socket. It belongs to the thread that made it.
package final class MessageSocket {
    package enum Kind: Sendable {
        case dealer, router, reply, pair

        var number: Int32 {
            switch self {
            case .dealer: ZMQ_DEALER
            case .router: ZMQ_ROUTER
            case .reply: ZMQ_REP
            case .pair: ZMQ_PAIR
            }
        }
    }

    /// Numbers that a socket goes by; zmq_setsockopt(3) explains each.
    package enum Option: Sendable {
        /// Messages that wait in one direction; what comes beyond them is not read.
        case receiveBound, sendBound
        /// A longer frame ends its connection.
        case frameBytes
        case handshakeMilliseconds, connectMilliseconds
        case heartbeatMilliseconds, heartbeatTimeoutMilliseconds
        /// -1: a lost connection stays lost.
        case reconnectMilliseconds
        /// 1: what is said before there is a connection is refused instead of kept.
        case onlyConnected
        case handover, mandatory, curveServer
        /// 1: IPv6 addresses are addresses too; the library takes IPv4 alone by itself.
        case takesV6

        var number: Int32 {
            switch self {
            case .receiveBound: ZMQ_RCVHWM
            case .sendBound: ZMQ_SNDHWM
            case .frameBytes: ZMQ_MAXMSGSIZE
            case .handshakeMilliseconds: ZMQ_HANDSHAKE_IVL
            case .connectMilliseconds: ZMQ_CONNECT_TIMEOUT
            case .heartbeatMilliseconds: ZMQ_HEARTBEAT_IVL
            case .heartbeatTimeoutMilliseconds: ZMQ_HEARTBEAT_TIMEOUT
            case .reconnectMilliseconds: ZMQ_RECONNECT_IVL
            case .onlyConnected: ZMQ_IMMEDIATE
            case .handover: ZMQ_ROUTER_HANDOVER
            case .mandatory: ZMQ_ROUTER_MANDATORY
            case .curveServer: ZMQ_CURVE_SERVER
            case .takesV6: ZMQ_IPV6
            }
        }
    }

    /// Bytes that a socket goes by.
    package enum Name: Sendable {
        case routingID, curvePublicKey, curveSecretKey, curveServerKey

        var number: Int32 {
            switch self {
            case .routingID: ZMQ_ROUTING_ID
            case .curvePublicKey: ZMQ_CURVE_PUBLICKEY
            case .curveSecretKey: ZMQ_CURVE_SECRETKEY
            case .curveServerKey: ZMQ_CURVE_SERVERKEY
            }
        }
    }

    private let context: MessageContext
    private let pointer: UnsafeMutableRawPointer
    private var isOpen = true

    /// What is unsent when it is closed is dropped.
    ///
    /// - Returns: `nil` when the context, or the process, has no room for another.
    package init?(_ kind: Kind, in context: MessageContext) {
        guard let pointer = zmq_socket(context.pointer, kind.number) else { return nil }
        self.context = context
        self.pointer = pointer
        var linger: Int32 = 0
        zmq_setsockopt(pointer, ZMQ_LINGER, &linger, 4)
    }

    deinit { close() }

    package func close() {
        guard isOpen else { return }
        endMonitor()
        isOpen = false
        zmq_close(pointer)
    }

    /// Nothing is told any more when this returns.
    func endMonitor() {
        guard isOpen else { return }
        zmq_socket_monitor(pointer, nil, 0)
    }

    /// A value that the library does not take is a bug of ours.
    package func set(_ option: Option, _ value: Int) {
        guard case .frameBytes = option else {
            var number = Int32(clamping: value)
            precondition(zmq_setsockopt(pointer, option.number, &number, 4) == 0, "a socket's option")
            return
        }
        var number = Int64(value)
        precondition(zmq_setsockopt(pointer, option.number, &number, 8) == 0, "a socket's option")
    }

    package func set(_ name: Name, _ value: UnsafeRawBufferPointer) {
        let result = zmq_setsockopt(pointer, name.number, value.baseAddress, value.count)
        precondition(result == 0, "a socket's option")
    }

    package func set(_ name: Name, _ value: [UInt8]) { value.withUnsafeBytes { set(name, $0) } }

    /// - Returns: whether the address could be read; a connection is made behind our back.
    package func connect(_ endpoint: String) -> Bool { zmq_connect(pointer, endpoint) == 0 }

    /// - Returns: the address with its port; `nil` when it is taken or malformed.
    package func bind(_ endpoint: String) -> String? {
        guard zmq_bind(pointer, endpoint) == 0 else { return nil }
        var text = [CChar](repeating: 0, count: 256)
        var count = text.count
        guard zmq_getsockopt(pointer, ZMQ_LAST_ENDPOINT, &text, &count) == 0 else { return nil }
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } }
    }

    /// Tells of what happens to its connections.
    ///
    /// - Parameter name: no other monitor of the context may have it.
    package func monitor(_ name: String) -> SocketMonitor? {
        let endpoint = "inproc://\(name)"
        guard zmq_socket_monitor(pointer, endpoint, SocketMonitor.events) == 0,
            let reader = MessageSocket(.pair, in: context), reader.connect(endpoint)
        else {
            endMonitor()
            return nil
        }
        return SocketMonitor(reader, of: self)
    }

    /// What `poll` watches for: it shows that something may have changed, not what.
    package var descriptor: Int32 {
        var number: Int32 = -1
        var count = 4
        zmq_getsockopt(pointer, ZMQ_FD, &number, &count)
        return number
    }

    /// Takes in what the library's own thread has to say, such as that a connection stands.
    package func lookAround() {
        var number: Int32 = 0
        var count = 4
        zmq_getsockopt(pointer, ZMQ_EVENTS, &number, &count)
    }

    // MARK: Sending

    /// Sends one message, or nothing of it.
    ///
    /// - Returns: false when there is no connection, or no room.
    package func send(_ frames: [MessageFrame]) -> Bool {
        lookAround()
        for (index, frame) in frames.enumerated() {
            let flags = ZMQ_DONTWAIT | (index == frames.count - 1 ? 0 : ZMQ_SNDMORE)
            guard frame.send(on: pointer, flags) else {
                // Only the first can be refused: a message that has begun finds room for all of its frames.
                return false
            }
        }
        return true
    }

    // MARK: Receiving

    /// The next message; `nil`: none is there.
    ///
    /// - Parameter framesAtMost: of a longer message only so many frames are kept, and it is said so.
    package func receive(framesAtMost: Int) -> ReceivedMessage? {
        var received = ReceivedMessage()
        // Ends with the message, whose frames are all here: the library hands out whole messages.
        while true {
            var frame = zmq_msg_t()
            zmq_msg_init(&frame)
            defer { zmq_msg_close(&frame) }
            guard zmq_msg_recv(&frame, pointer, ZMQ_DONTWAIT) >= 0 else {
                return received.frames.isEmpty ? nil : received
            }
            if received.frames.count < framesAtMost {
                let raw = UnsafeRawBufferPointer(start: zmq_msg_data(&frame), count: zmq_msg_size(&frame))
                received.frames.append(Secret(copying: raw))
                if received.userID == nil, let user = zmq_msg_gets(&frame, "User-Id") {
                    received.userID = String(cString: user)
                }
            } else {
                received.isCut = true
            }
            if zmq_msg_more(&frame) == 0 { return received }
        }
    }
}

/// A message that came.
package struct ReceivedMessage: Sendable {
    package var frames: [Secret] = []
    /// It had more frames than were kept.
    package var isCut = false
    /// Who the authenticator says that the sender is.
    package var userID: String?
}
