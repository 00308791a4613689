import CZeroMQ
import Glibc

/// Waits for many sockets at once: one call wakes for any of thousands.
///
/// A ZeroMQ socket's descriptor only shows that its owner should look; who is told so reads until there is
/// nothing more.
package final class SocketPoll {
    private let descriptor: Int32
    private let waking: WakeUp
    private var events: [epoll_event]

    /// - Parameter waking: ends a wait from another thread.
    /// - Returns: `nil` when the process has no descriptor left.
    package init?(waking: WakeUp) {
        let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
        self.waking = waking
        events = Array(repeating: epoll_event(), count: 256)
        add(waking.descriptor, .max)
    }

    deinit { close(descriptor) }

    package func add(_ watched: Int32, _ id: UInt64) {
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: id))
        epoll_ctl(descriptor, EPOLL_CTL_ADD, watched, &event)
    }

    package func remove(_ watched: Int32) { epoll_ctl(descriptor, EPOLL_CTL_DEL, watched, nil) }

    /// Those to look at; after so long none.
    package func wait(milliseconds: Int32) -> [UInt64] {
        let count = epoll_wait(descriptor, &events, Int32(events.count), milliseconds)
        guard count > 0 else { return [] }
        return events.prefix(Int(count)).compactMap { event in
            guard event.data.u64 != .max else {
                waking.calm()
                return nil
            }
            return event.data.u64
        }
    }
}

/// Wakes a thread that waits in a ``SocketPoll``.
package final class WakeUp: Sendable {
    let descriptor: Int32

    /// - Returns: `nil` when the process has no descriptor left.
    package init?() {
        let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    package func ring() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func calm() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}
