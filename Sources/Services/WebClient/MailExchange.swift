import CResolver
import CWiping
import Dialling
import NIOPosix
import Synchronization

/// What name servers say of a domain's mail exchangers.
package enum MailExchange: Sendable, Hashable {
    case present
    /// There is no such domain, it has none, or it says that it takes no mail (RFC 7505).
    case absent
    /// No name server answered in time, or none could.
    case unknown
}

/// Looks mail exchangers up through the system's resolver (`/etc/resolv.conf`), on threads of its own: a name
/// server that does not answer holds nobody else up.
package final class MailExchangeResolver: Sendable {
    /// The one over the system's name servers.
    package static let system = MailExchangeResolver()

    /// How long each name server is waited for. Half of what a look-up may take in all: the first of two may
    /// be silent.
    package static let secondsForEach = 2
    /// A sign-up's caller waits ten seconds or more.
    package static let deadline = Duration.seconds(5)
    /// Look-ups under way or waiting for a thread. Sign-ups come at most once a second, so more than this
    /// means that no name server answers.
    private static let limit = 16
    /// Two, so that one that waits does not stop all.
    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 2)
        pool.start()
        return pool
    }()
    private let underWay = Mutex(0)

    /// 0: the system's name servers.
    private let port: UInt16
    /// Of one that is asked first; 0: none is.
    private let before: UInt16
    private let secondsForEach: Int
    private let deadline: Duration

    /// - Parameters:
    ///   - port: of a name server on 127.0.0.1 instead of the system's, for tests.
    ///   - before: of another that is asked first.
    package init(
        port: UInt16 = 0, before: UInt16 = 0, secondsForEach: Int = MailExchangeResolver.secondsForEach,
        deadline: Duration = MailExchangeResolver.deadline
    ) {
        self.port = port
        self.before = before
        self.secondsForEach = secondsForEach
        self.deadline = deadline
    }

    /// - Parameter domain: letters, digits, hyphens and dots.
    package func exchange(of domain: String) async -> MailExchange {
        let isTaken = underWay.withLock { count in
            guard count < Self.limit else { return false }
            count += 1
            return true
        }
        guard isTaken else { return .unknown }
        return await withTaskGroup(of: MailExchange.self) { group in
            group.addTask { await self.ask(domain) }
            group.addTask {
                // Cancelled when the answer is there.
                try? await Task.sleep(for: self.deadline)
                return .unknown
            }
            defer { group.cancelAll() }
            return await group.next() ?? .unknown
        }
    }

    private func ask(_ domain: String) async -> MailExchange {
        let answer = FirstAnswer<MailExchange>()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                answer.wait(continuation)
                Self.threads.submit { state in
                    let found = state == .active ? self.lookUp(domain) : .unknown
                    sealbell_wipe_stack()
                    self.underWay.withLock { $0 -= 1 }
                    answer.give(found)
                }
            }
        } onCancel: {
            answer.give(.unknown)
        }
    }

    /// Blocks.
    private func lookUp(_ domain: String) -> MailExchange {
        // More than a name server sends without being asked to; what does not fit is not read.
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let length = bytes.withUnsafeMutableBufferPointer {
            sealbell_query_mx(domain, $0.baseAddress, Int32($0.count), Int32(secondsForEach), port, before)
        }
        guard length >= 0 else { return .unknown }
        return Self.hasExchange(bytes[..<min(Int(length), bytes.count)]) ? .present : .absent
    }

    /// Whether an answer (RFC 1035 §4.1) names a mail exchanger other than the root, which means none
    /// (RFC 7505). What is cut short or malformed ends the reading.
    package static func hasExchange(_ message: ArraySlice<UInt8>) -> Bool {
        var reader = DNSReader(message)
        guard reader.skip(4), let questions = reader.word(), let answers = reader.word(), reader.skip(4)
        else {
            return false
        }
        for _ in 0..<questions { guard reader.skipName(), reader.skip(4) else { return false } }
        for _ in 0..<answers {
            guard reader.skipName(), let type = reader.word(), let network = reader.word(), reader.skip(4),
                let length = reader.word(), let data = reader.take(length)
            else { return false }
            // Preference (two bytes), then a name, which begins with zero when it is the root.
            if type == 15, network == 1, length >= 3, data[data.startIndex + 2] != 0 { return true }
        }
        return false
    }
}

/// Reads a DNS message from its beginning.
private struct DNSReader {
    private var rest: ArraySlice<UInt8>

    init(_ message: ArraySlice<UInt8>) { rest = message }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func skip(_ count: Int) -> Bool { take(count) != nil }
    mutating func word() -> Int? { take(2).map { Int($0[$0.startIndex]) << 8 | Int($0[$0.startIndex + 1]) } }

    /// Labels up to an empty one, or up to a pointer, which ends a name (RFC 1035 §4.1.4).
    mutating func skipName() -> Bool {
        // Ends: each round takes a byte at least.
        while let length = take(1)?.first {
            if length == 0 { return true }
            if length >= 0xC0 { return skip(1) }
            guard length < 0x40, skip(Int(length)) else { return false }
        }
        return false
    }
}
