import CZeroMQ
package import PushModel

/// One frame to send.
package enum MessageFrame: Sendable {
    /// Static or public bytes, which are copied.
    case bytes([UInt8])
    case text(StaticString)
    /// Lent to the library until it has been sent: many sockets send the same.
    case shared(SharedBytes)

    func send(on socket: UnsafeMutableRawPointer, _ flags: Int32) -> Bool {
        switch self {
        case .bytes(let bytes):
            bytes.withUnsafeBytes { zmq_send(socket, $0.baseAddress, $0.count, flags) >= 0 }
        case .text(let text): zmq_send(socket, text.utf8Start, text.utf8CodeUnitCount, flags) >= 0
        case .shared(let shared): shared.send(on: socket, flags)
        }
    }
}

/// Bytes that several messages hold together, and nobody changes.
package final class SharedBytes: Sendable {
    private let bytes: Secret

    package init(_ bytes: Secret) { self.bytes = bytes }

    fileprivate func send(on socket: UnsafeMutableRawPointer, _ flags: Int32) -> Bool {
        // The address stays good for as long as the library holds us: a secret's storage never moves.
        let raw = bytes.reveal { $0 }
        let held = Unmanaged.passRetained(self)
        var frame = zmq_msg_t()
        let made = zmq_msg_init_data(
            &frame, UnsafeMutableRawPointer(mutating: raw.baseAddress), raw.count,
            { _, hint in if let hint { Unmanaged<SharedBytes>.fromOpaque(hint).release() } },
            held.toOpaque())
        guard made == 0 else {
            held.release()
            return false
        }
        if zmq_msg_send(&frame, socket, flags) >= 0 { return true }
        // Lets go of us again.
        zmq_msg_close(&frame)
        return false
    }
}
