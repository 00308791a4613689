import CZeroMQ

/// Where ZeroMQ's sockets and its thread for input and output live.
package final class MessageContext: @unchecked Sendable {
    // Safety: a context may be used by all threads (zmq_ctx_new(3)); the pointer never changes.
    let pointer: UnsafeMutableRawPointer

    /// - Parameter sockets: at most so many are open at once, a socket's monitor counting as two.
    package init(sockets: Int) {
        guard let pointer = zmq_ctx_new() else { preconditionFailure("no memory for a ZeroMQ context") }
        self.pointer = pointer
        zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, Int32(clamping: sockets))
        zmq_ctx_set(pointer, ZMQ_IO_THREADS, 1)
        zmq_ctx_set(pointer, ZMQ_BLOCKY, 0)
    }

    /// Waits for the thread of input and output; every socket must be closed by now.
    deinit { zmq_ctx_term(pointer) }
}
