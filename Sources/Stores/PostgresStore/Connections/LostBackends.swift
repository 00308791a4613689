import PushModel
import Synchronization

/// Server processes of connections that ended while something was under way.
final class LostBackends: Sendable {
    private let backends = Mutex<Set<Backend>>([])

    /// How many are remembered: a dozen times as many as there are at once.
    private static let atMost = 64

    /// Its transaction may still commit, or hold a lock.
    func add(_ backend: Backend) {
        backends.withLock { if $0.count < Self.atMost { $0.insert(backend) } }
    }

    /// Ends what may still be under way behind lost connections, and waits until it is gone.
    ///
    /// - Throws: `.unavailable` when a process does not end in time.
    func end(_ session: PostgresSession) throws(PostgresFault) {
        let lost = backends.withLock { Array($0) }
        guard !lost.isEmpty else { return }
        // A process ends in milliseconds unless its disk stalls.
        for round in 0..<50 {
            let left = try session.run(
                [
                    Query(PostgresSQL.endLostBackends) { query in
                        query.add(int64s: lost.map(\.pid))
                        query.add(int64s: lost.map(\.startedAt))
                    }
                ], commits: false)[0]
            if try left.int(0, 0) == 0 {
                backends.withLock { $0.subtract(lost) }
                return
            }
            Pause.milliseconds(min(100, 2 << Int32(min(round, 8))))
        }
        throw .store(StoreError(.unavailable))
    }
}
