import Secp256k1Keys
import Synchronization

/// Lets those who want the same thing done at once have it done once.
final class Flights: Sendable {
    private typealias Waiter = CheckedContinuation<Void, Never>
    /// Those who wait for each; each is a task that exists already, so the bound is theirs.
    private let waiting = Mutex<[XOnlyKey: [Waiter]]>([:])

    /// Runs `body`, or waits for whoever runs it for that key already.
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
