#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel

/// Sockets that the service manager opened, listens at, and hands over at each start (`sd_listen_fds(3)`):
/// they outlive this process, so that a connection made during a restart waits for the next one.
struct InheritedSockets: Sendable {
    struct Socket: Sendable, Hashable {
        let descriptor: CInt
        /// What `LISTEN_FDNAMES` calls it; `nil` where nothing is said.
        let name: String?
        /// The address that it is bound to.
        let host: IPAddress
        let port: Int
    }

    private(set) var sockets: [Socket] = []

    /// The first descriptor that is handed over, as the protocol fixes it.
    static let firstDescriptor: CInt = 3
    /// More than any configuration has listeners; what claims more is not meant.
    private static let most = 256

    /// Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`. Sockets for another process are not ours: none.
    ///
    /// - Throws: `.configuration` when a descriptor is no socket of TCP that listens.
    init(_ facts: ProcessFacts, from first: CInt = firstDescriptor) throws(CommandFailure) {
        guard facts.environment["LISTEN_PID"] == String(facts.processID),
            let count = facts.environment["LISTEN_FDS"].flatMap({ Int($0) }), (1...Self.most).contains(count)
        else { return }
        let names = (facts.environment["LISTEN_FDNAMES"] ?? "")
            .split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        for index in 0..<count {
            let descriptor = first + CInt(index)
            guard Self.listens(descriptor), let (host, port) = Self.address(of: descriptor) else {
                throw CommandFailure(
                    .configuration,
                    "LISTEN_FDS: descriptor \(descriptor) is no TCP socket that listens. In the socket unit, "
                        + "use ListenStream= with an address and Accept=no.")
            }
            // Programs that this one starts have no business with it.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let name = index < names.count && !names[index].isEmpty ? names[index] : nil
            sockets.append(Socket(descriptor: descriptor, name: name, host: host, port: port))
        }
    }

    /// Which listener accepts from which sockets: by name, else by address.
    ///
    /// - Throws: `.configuration` for a socket that fits no listener, for connections made there would wait
    ///   for ever.
    func match(_ listeners: [ListenerConfiguration]) throws(CommandFailure) -> [ConfiguredName: [CInt]] {
        var matched: [ConfiguredName: [CInt]] = [:]
        for socket in sockets {
            let named = listeners.first { $0.name.text == socket.name }
            let bound = listeners.first {
                $0.bind.port == socket.port && IPAddress($0.bind.host) == socket.host
            }
            guard let listener = named ?? bound else {
                throw CommandFailure(
                    .configuration,
                    "LISTEN_FDS: no listener is named like the socket of port \(socket.port), nor bound to "
                        + "its address. Set FileDescriptorName= of the socket unit to a listener's name.")
            }
            matched[listener.name, default: []].append(socket.descriptor)
        }
        return matched
    }

    /// The address that a socket is bound to, which need not be the one that its listener is configured with.
    ///
    /// - Returns: `nil` for a descriptor that is no socket of IPv4 or IPv6.
    static func host(of descriptor: CInt) -> String? { address(of: descriptor)?.0.text }

    private static func listens(_ descriptor: CInt) -> Bool {
        var (accepts, kind) = (CInt(0), CInt(0))
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &length) == 0,
            getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &length) == 0
        else { return false }
        #if canImport(Glibc)
        return accepts != 0 && kind == CInt(SOCK_STREAM.rawValue)
        #else
        return accepts != 0 && kind == SOCK_STREAM
        #endif
    }

    /// `nil` for what is neither IPv4 nor IPv6.
    private static func address(of descriptor: CInt) -> (IPAddress, Int)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isRead = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isRead else { return nil }
        return withUnsafeBytes(of: storage) { bytes in
            switch Int32(storage.ss_family) {
            case AF_INET:
                let name = bytes.loadUnaligned(as: sockaddr_in.self)
                return text(AF_INET, name.sin_addr).map { ($0, Int(UInt16(bigEndian: name.sin_port))) }
            case AF_INET6:
                let name = bytes.loadUnaligned(as: sockaddr_in6.self)
                return text(AF_INET6, name.sin6_addr).map { ($0, Int(UInt16(bigEndian: name.sin6_port))) }
            default: return nil
            }
        }
    }

    private static func text<Address>(_ family: Int32, _ address: Address) -> IPAddress? {
        var text = [CChar](repeating: 0, count: 64)
        let isWritten = withUnsafePointer(to: address) {
            inet_ntop(family, $0, &text, socklen_t(text.count)) != nil
        }
        guard isWritten else { return nil }
        return IPAddress(
            String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
}
