import Synchronization

/// Hosts that are being asked for a secret. Each stands here for as long as one fetch takes
/// (``ZulipLimits/challengeDeadline``), so their number is bounded by that of fetches.
final class HostsAsked: Sendable {
    private let hosts = Mutex<Set<String>>([])

    /// False when the host is being asked already.
    func enter(_ host: String) -> Bool { hosts.withLock { $0.insert(host).inserted } }
    func leave(_ host: String) { hosts.withLock { _ = $0.remove(host) } }
}
