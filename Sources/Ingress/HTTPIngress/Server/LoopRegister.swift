import NIOCore
import PushModel

/// The connections of one event loop, for sweeps over their deadlines and for draining.
///
/// One sweep a second over all connections costs less than a timer for each request.
final class LoopRegister: @unchecked Sendable {
    // Safety: the stored variables are touched on `loop` alone, which every entry checks.
    let loop: any EventLoop
    private var connections: [HTTPConnection] = []
    private var line = DateLine()

    init(_ loop: any EventLoop) { self.loop = loop }

    func add(_ connection: HTTPConnection) {
        loop.preconditionInEventLoop()
        connection.place = connections.count
        connections.append(connection)
    }

    /// The last connection takes the place of the one that goes.
    func remove(_ connection: HTTPConnection) {
        loop.preconditionInEventLoop()
        guard connection.place >= 0 else { return }
        let last = connections.removeLast()
        if last !== connection {
            connections[connection.place] = last
            last.place = connection.place
        }
        connection.place = -1
    }

    func date(_ now: UnixTime) -> [UInt8] {
        loop.preconditionInEventLoop()
        return line.bytes(at: now)
    }

    /// Calls `visit` on every connection, which may close itself meanwhile.
    func visitAll(_ visit: @escaping @Sendable (HTTPConnection) -> Void) {
        loop.execute { for connection in self.connections { visit(connection) } }
    }
}
