package import PushModel
import Synchronization

/// Which address of a name worked last: it is tried first the next time, so that a dead one costs its wait
/// once.
package final class DialMemory: Sendable {
    /// Names that are remembered: more than anybody configures. Above it all are forgotten, which costs each
    /// of them one attempt.
    private static let limit = 256
    private let addresses = Mutex<[String: IPAddress]>([:])

    package init() {}

    package func last(_ host: String) -> IPAddress? { addresses.withLock { $0[host] } }

    package func worked(_ address: IPAddress, for host: String) {
        addresses.withLock { addresses in
            if addresses.count >= Self.limit, addresses[host] == nil { addresses = [:] }
            addresses[host] = address
        }
    }
}
