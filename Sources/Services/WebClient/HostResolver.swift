import CResolver
import CWiping
import NIOPosix
package import PushModel
import Synchronization

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

/// The system's resolver, on threads of its own. A cancelled caller does not wait for it, and a look-up that
/// has not begun when its caller leaves never does.
///
/// The system gives no way to break a look-up off, so anyone who chooses the name chooses how long a thread
/// is gone. Hosts of peers' choice therefore have threads that nobody else waits for.
package final class SystemResolver: HostResolver {
    /// For hosts that the operator has named: token endpoints, webhooks.
    static let own = SystemResolver(threads: 2, waiting: WebLimits.fetches) { lookUp($0) }
    /// For hosts of peers' choice.
    static let peers = SystemResolver(threads: WebLimits.peerThreads, waiting: WebLimits.peerFetches) {
        lookUpBriefly($0)
    }

    private struct Job: Sendable {
        let id: UInt64
        let host: String
        let answer: FirstAnswer<[IPAddress]>
    }

    private struct State {
        var waiting: [Job] = []
        var running = 0
        var lastID: UInt64 = 0
    }

    private let threads: Int
    private let limit: Int
    private let lookUp: @Sendable (String) -> [IPAddress]
    private let pool: NIOThreadPool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - threads: look-ups at one time.
    ///   - waiting: look-ups that wait for a thread; one more fails at once.
    ///   - lookUp: blocks; no address: there is no such name, or nobody knows.
    package init(threads: Int, waiting: Int, _ lookUp: @escaping @Sendable (String) -> [IPAddress]) {
        self.threads = threads
        limit = waiting
        self.lookUp = lookUp
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    /// Look-ups that wait for a thread, and those that have one.
    package var load: (waiting: Int, running: Int) { state.withLock { ($0.waiting.count, $0.running) } }

    package func resolve(_ host: String) async throws(WebError) -> [IPAddress] {
        let answer = FirstAnswer<[IPAddress]>()
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let addresses = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                answer.wait(continuation)
                enter(Job(id: id, host: host, answer: answer))
            }
        } onCancel: {
            state.withLock { $0.waiting.removeAll { $0.id == id } }
            answer.give([])
        }
        guard !addresses.isEmpty else { throw WebError(.unreachable) }
        return addresses
    }

    private func enter(_ job: Job) {
        // Its caller had left before it came here.
        if job.answer.isGiven { return }
        let (starts, isTaken) = state.withLock { state in
            if state.running < threads {
                state.running += 1
                return (true, true)
            }
            guard state.waiting.count < limit else { return (false, false) }
            state.waiting.append(job)
            return (false, true)
        }
        guard isTaken else { return job.answer.give([]) }
        guard starts else { return }
        pool.submit { state in self.work(job, isActive: state == .active) }
    }

    /// One thread's work: this look-up, and then what waits, first come, first served.
    private func work(_ first: Job, isActive: Bool) {
        var next: Job? = first
        // Ends: each round takes one of those that wait, and there is a bound on them.
        while let job = next {
            let found = isActive && !job.answer.isGiven ? lookUp(job.host) : []
            // The resolver works on the stack, and a pool's thread may not be called again for long.
            sealbell_wipe_stack()
            job.answer.give(found)
            next = state.withLock { state in
                if state.waiting.isEmpty {
                    state.running -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
        }
    }

    /// The same, but for a host of a peer's choice: no name server is waited for longer than two seconds.
    ///
    /// - Parameter port: of a name server on 127.0.0.1 instead of the system's, for tests.
    package static func lookUpBriefly(_ host: String, port: UInt16 = 0) -> [IPAddress] {
        sealbell_bound_lookups(WebLimits.peerLookUpSeconds, port)
        return lookUp(host)
    }

    /// Blocks; in the order that the system prefers.
    package static func lookUp(_ host: String) -> [IPAddress] {
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
