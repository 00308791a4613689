import Synchronization

/// Hosts that are being asked for a secret. Each is listed as long as one fetch takes
/// (``ZulipLimits/challengeDeadline``), so their number is bounded by that of fetches.
///
/// By the standard library's hash, whose seed is the process's own: a short name would stay in the table's
/// memory when it has gone from the table.
final class HostsAsked: Sendable {
    private let hosts = Mutex<Set<Int>>([])

    /// False when the host is being asked already.
    func enter(_ host: String) -> Bool { hosts.withLock { $0.insert(host.hashValue).inserted } }
    func leave(_ host: String) { hosts.withLock { _ = $0.remove(host.hashValue) } }
}
