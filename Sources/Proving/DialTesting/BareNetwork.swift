#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOCore
package import NIOPosix

/// A network of its own, with a loopback interface, without IPv6 and without a way out, as containers have
/// it.
///
/// On Linux a network belongs to a thread. So everything that an event loop's thread opens is in it, and the
/// rest of the process is not.
package enum BareNetwork {
    package enum Fault: Error { case notAllowed(String) }

    /// One for all tests of a process, until the process ends: sockets that still close after a test need the
    /// loop.
    private static let made: Result<MultiThreadedEventLoopGroup, any Error> = {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        return Result {
            try group.next().submit { try enter() }.wait()
            return group
        }
    }()

    /// Why this process may not make one; `nil`: it may. Root may, and processes with CAP_SYS_ADMIN.
    package static var refusal: String? {
        if case .failure(let error) = made { "\(error)" } else { nil }
    }

    /// Runs `body` with an event loop in such a network.
    package static func with<Result: Sendable>(
        _ body: (MultiThreadedEventLoopGroup) async throws -> Result
    ) async throws -> Result {
        try await body(try made.get())
    }

    /// Moves the calling thread.
    private static func enter() throws {
        #if canImport(Glibc)
        typealias Unshare = @convention(c) (CInt) -> CInt
        let newNetwork: CInt = 0x4000_0000
        guard let symbol = dlsym(nil, "unshare") else { throw Fault.notAllowed("unshare") }
        guard unsafeBitCast(symbol, to: Unshare.self)(newNetwork) == 0 else {
            throw Fault.notAllowed("unshare: \(errno)")
        }
        for name in ["all", "default", "lo"] { try turnOff(name) }
        try bringUp("lo")
        #else
        throw Fault.notAllowed("no namespaces")
        #endif
    }

    #if canImport(Glibc)
    private static func turnOff(_ name: String) throws {
        let file = open("/proc/sys/net/ipv6/conf/\(name)/disable_ipv6", O_WRONLY | O_CLOEXEC)
        // A kernel without IPv6 has no such file.
        if file < 0, errno == ENOENT { return }
        guard file >= 0 else { throw Fault.notAllowed("disable_ipv6: \(errno)") }
        defer { close(file) }
        guard write(file, "1", 1) == 1 else { throw Fault.notAllowed("disable_ipv6: \(errno)") }
    }

    /// netdevice(7): SIOCSIFFLAGS with IFF_UP and IFF_RUNNING.
    private static func bringUp(_ name: String) throws {
        let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        guard socket >= 0 else { throw Fault.notAllowed("socket: \(errno)") }
        defer { close(socket) }
        var request = [UInt8](repeating: 0, count: 40)
        for (index, byte) in name.utf8.enumerated() { request[index] = byte }
        request[16] = 0x41
        let result = request.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { ioctl(socket, 0x8914, $0) } ?? -1
        }
        guard result == 0 else { throw Fault.notAllowed("SIOCSIFFLAGS: \(errno)") }
    }
    #endif
}
