import Secp256k1Keys
import Synchronization

/// Runs work once for all callers that ask for the same work at the same time.
final class Flights: Sendable {
    private typealias Waiter = CheckedContinuation<Void, Never>
    /// The waiters of each; each is an existing task, so their number is bounded by the tasks.
    private let waiting = Mutex<[XOnlyKey: [Waiter]]>([:])

    /// Runs `body`, or waits for the caller that is already running it for this key.
    func share(_ key: XOnlyKey, _ body: () async -> Void) async {
        let isFirst = waiting.withLock { waiting in
            if waiting[key] != nil { return false }
            waiting[key] = []
            return true
        }
        guard isFirst else { return await wait(key) }
        await body()
        let waiters = waiting.withLock { $0.removeValue(forKey: key) } ?? []
        for waiter in waiters { waiter.resume() }
    }

    private func wait(_ key: XOnlyKey) async {
        await withCheckedContinuation { (waiter: Waiter) in
            let isOver = waiting.withLock { waiting in
                guard waiting[key] != nil else { return true }
                waiting[key]?.append(waiter)
                return false
            }
            if isOver { waiter.resume() }
        }
    }
}
