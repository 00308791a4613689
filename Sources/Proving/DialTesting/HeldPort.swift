#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A port of this machine that is taken but at which nobody listens: connections are refused, and no other
/// server can take it meanwhile.
package final class HeldPort: Sendable {
    private let socket: CInt

    /// - Parameters:
    ///   - port: 0: any free one.
    ///   - isSixth: at ::1; else at 127.0.0.1.
    /// - Returns: `nil` if it is already taken, or the machine has no such address.
    package init?(_ port: Int, isSixth: Bool) {
        guard let port = in_port_t(exactly: port) else { return nil }
        let opened = Self.open(isSixth ? AF_INET6 : AF_INET)
        guard opened >= 0 else { return nil }
        socket = opened
        guard isSixth ? Self.takeSixth(opened, port) : Self.takeFourth(opened, port) else { return nil }
    }

    deinit { close(socket) }

    /// The port, for one at 127.0.0.1.
    package var number: Int {
        var place = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &place) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }
        return result == 0 ? Int(in_port_t(bigEndian: place.sin_port)) : 0
    }

    private static func open(_ family: CInt) -> CInt {
        #if canImport(Glibc)
        let opened = Glibc.socket(family, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let opened = Darwin.socket(family, SOCK_STREAM, 0)
        #endif
        if opened >= 0 { _ = fcntl(opened, F_SETFD, FD_CLOEXEC) }
        return opened
    }

    private static func takeFourth(_ socket: CInt, _ port: in_port_t) -> Bool {
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = port.bigEndian
        place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return take(socket, &place)
    }

    private static func takeSixth(_ socket: CInt, _ port: in_port_t) -> Bool {
        var place = sockaddr_in6()
        place.sin6_family = sa_family_t(AF_INET6)
        place.sin6_port = port.bigEndian
        place.sin6_addr = in6addr_loopback
        return take(socket, &place)
    }

    private static func take<Place>(_ socket: CInt, _ place: inout Place) -> Bool {
        withUnsafePointer(to: &place) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<Place>.size)) == 0
            }
        }
    }
}
