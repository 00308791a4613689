package import PushModel
import Synchronization

/// One step at a time for each user, in order of arrival: state is read, changed and committed, and clients
/// are told, before the next step begins.
package final class UserTurns: Sendable {
    /// Steps that wait for one user: twice the hundred phones of one account that all come back at once; some
    /// 100 KiB.
    package static let waiting = 256

    private let queues = Mutex<[String: [CheckedContinuation<Void, Never>]]>([:])

    package init() {}

    /// - Throws: `.overloaded` where too many wait for the same user, and what `work` throws.
    package func take<Result: Sendable, Failure: DeferringError>(
        _ user: String, _ work: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        guard await begin(user) else { throw .overloaded(retryAfter: .seconds(1)) }
        defer { end(user) }
        return try await work()
    }

    private func begin(_ user: String) async -> Bool {
        var isTaken = true
        await withCheckedContinuation { (turn: CheckedContinuation<Void, Never>) in
            let goesOn = queues.withLock { queues -> Bool in
                guard let waiting = queues[user] else {
                    queues[user] = []
                    return true
                }
                guard waiting.count < Self.waiting else {
                    isTaken = false
                    return true
                }
                queues[user]?.append(turn)
                return false
            }
            if goesOn { turn.resume() }
        }
        return isTaken
    }

    private func end(_ user: String) {
        let next = queues.withLock { queues -> CheckedContinuation<Void, Never>? in
            guard var waiting = queues[user], !waiting.isEmpty else {
                queues[user] = nil
                return nil
            }
            // At most 256 of them.
            let next = waiting.removeFirst()
            queues[user] = waiting
            return next
        }
        next?.resume()
    }
}
