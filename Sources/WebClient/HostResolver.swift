import CWiping
import NIOPosix
package import PushModel

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// Turns a host name into addresses, best first.
package protocol HostResolver: Sendable {
    /// - Throws: `.unreachable` when the name has no address.
    func resolve(_ host: String) async throws(WebError) -> [IPAddress]
}

/// The system's resolver, on NIO's thread pool. A cancelled caller does not wait for it.
package struct SystemResolver: HostResolver {
    package init() {}

    package func resolve(_ host: String) async throws(WebError) -> [IPAddress] {
        let answer = FirstAnswer<[IPAddress]>()
        let addresses = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                answer.wait(continuation)
                NIOThreadPool.singleton.submit { state in
                    let found = state == .active ? Self.lookUp(host) : []
                    // The resolver works on the stack, and a pool's thread may not be called again for long.
                    sealbell_wipe_stack()
                    answer.give(found)
                }
            }
        } onCancel: {
            answer.give([])
        }
        guard !addresses.isEmpty else { throw WebError(.unreachable) }
        return addresses
    }

    /// Blocks; in the order that the system prefers.
    private static func lookUp(_ host: String) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [IPAddress] = []
        var next = list
        while let entry = next {
            if let address = address(entry.pointee) { found.append(address) }
            next = entry.pointee.ai_next
        }
        return found
    }

    private static func address(_ entry: addrinfo) -> IPAddress? {
        guard let raw = UnsafeRawPointer(entry.ai_addr) else { return nil }
        switch entry.ai_family {
        case AF_INET:
            return IPAddress(v4: UInt32(bigEndian: raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr))
        case AF_INET6:
            // The 16 bytes of the address stand behind family, port and flow label.
            let start = MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr) ?? 8
            return IPAddress(
                high: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
                low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self)))
        default: return nil
        }
    }
}
