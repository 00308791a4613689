#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
package import PushModel
import Synchronization

/// An address other than 127.0.0.1 at which nobody can be reached on one port.
package final class DeadAddress: Sendable {
    /// In which way.
    package enum Kind: String, Sendable, CaseIterable {
        /// Connections are refused.
        case refusing
        /// IPv6, and nobody listens there; a network without IPv6 has no route to it.
        case sixth
        /// There is no route to it: RFC 6666's prefix, whose packets every router drops.
        case unroutable
        /// Packets are swallowed: a listener whose queue is full.
        case swallowing
        /// It takes connections and never sends anything.
        case silent
    }

    package enum Fault: Error { case systemCallFailed(String) }

    package let address: IPAddress
    private let sockets: [CInt]
    /// Each has a listening address of its own, however many there are at a time.
    private static let listeners = Atomic<UInt32>(0)

    /// - Parameter port: of the good server at 127.0.0.1.
    package init(_ kind: Kind, port: Int) throws {
        var sockets: [CInt] = []
        switch kind {
        case .refusing: address = IPAddress(v4: 0x7F00_0042)
        case .sixth: address = IPAddress(high: 0, low: 1)
        case .unroutable: address = IPAddress(high: 0x0100_0000_0000_0000, low: 0x42)
        case .swallowing:
            let place = Self.freePlace()
            address = IPAddress(v4: place)
            sockets.append(try Self.listener(place, port, backlog: 0))
            // One connection fills the queue; later ones are dropped.
            sockets.append(try Self.connection(place, port))
        case .silent:
            let place = Self.freePlace()
            address = IPAddress(v4: place)
            sockets.append(try Self.listener(place, port, backlog: 64))
        }
        self.sockets = sockets
    }

    deinit { for socket in sockets { close(socket) } }

    /// 127.1.0.0 to 127.1.255.255.
    private static func freePlace() -> UInt32 {
        0x7F01_0000 | listeners.wrappingAdd(1, ordering: .relaxed).oldValue & 0xFFFF
    }

    private static func place(_ word: UInt32, _ port: Int) -> sockaddr_in {
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = UInt16(port).bigEndian
        place.sin_addr.s_addr = word.bigEndian
        return place
    }

    private static func open() throws -> CInt {
        #if canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        let socket = socket(AF_INET, kind, 0)
        guard socket >= 0 else { throw Fault.systemCallFailed("socket") }
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        return socket
    }

    private static func listener(_ word: UInt32, _ port: Int, backlog: Int32) throws -> CInt {
        let socket = try open()
        var place = place(word, port)
        let isBound = withUnsafePointer(to: &place) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard isBound == 0, listen(socket, backlog) == 0 else { throw Fault.systemCallFailed("bind") }
        return socket
    }

    private static func connection(_ word: UInt32, _ port: Int) throws -> CInt {
        let socket = try open()
        var place = place(word, port)
        let isConnected = withUnsafePointer(to: &place) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard isConnected == 0 else { throw Fault.systemCallFailed("connect") }
        return socket
    }
}
