import CResolver
package import PushModel

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

extension SystemResolver {
    /// The same as ``lookUp(_:_:)``, but for a host of a peer's choice: no name server is waited for longer
    /// than two seconds.
    ///
    /// - Parameters:
    ///   - port: of a name server on 127.0.0.1 instead of the system's, for tests.
    ///   - seconds: for which each name server is waited for.
    package static func lookUpBriefly(
        _ host: String, _ family: Family = .both, port: UInt16 = 0,
        seconds: Int32 = LookUpLimits.peerSeconds
    ) -> [IPAddress]? {
        sealbell_bound_lookups(seconds, port)
        return lookUp(host, family)
    }

    /// Blocks; in the order that the system prefers.
    ///
    /// - Returns: `nil` when there is no such name; no address when no name server answered.
    package static func lookUp(_ host: String, _ family: Family = .both) -> [IPAddress]? {
        var hints = addrinfo()
        hints.ai_family =
            switch family {
            case .both: AF_UNSPEC
            case .v4: AF_INET
            case .v6: AF_INET6
            }
        #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        switch getaddrinfo(host, nil, &hints, &list) {
        case 0: break
        // The answer of a name server. If it is silent or fails, the code is `EAI_AGAIN` or `EAI_FAIL`.
        case EAI_NONAME: return nil
        default: return []
        }
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
            // The 4 bytes of the address stand behind family and port. By offset, because a module that knows
            // NIO's headers too, as ours does where it is compiled whole, knows these fields under theirs.
            return IPAddress(
                v4: UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
        case AF_INET6:
            // The 16 bytes of the address stand behind family, port and flow label.
            let start = 8
            return IPAddress(
                high: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
                low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self)))
        default: return nil
        }
    }
}
