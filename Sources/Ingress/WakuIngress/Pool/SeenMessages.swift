import Synchronization

/// Which messages came already, by their hashes: two generations, of which the older goes when the younger is
/// full. So a message is remembered for at least ``WakuLimits/seenMessages`` others.
package final class SeenMessages: Sendable {
    private struct State {
        var young: Set<Mark> = []
        var old: Set<Mark> = []
    }

    /// The first half of a hash: sixteen bytes of SHA-256 are enough where somebody who made two messages
    /// with one of them would only hide the second.
    private struct Mark: Hashable {
        let high: UInt64
        let low: UInt64

        init(_ hash: [UInt8]) {
            (high, low) = hash.withUnsafeBytes {
                (
                    $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                    $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
                )
            }
        }
    }

    private let state = Mutex(State())
    private let limit: Int

    package init(limit: Int = WakuLimits.seenMessages) { self.limit = limit }

    /// Notes a message.
    ///
    /// - Parameter hash: 32 bytes (14/WAKU2-MESSAGE).
    /// - Returns: whether it is new.
    package func note(_ hash: [UInt8]) -> Bool {
        let mark = Mark(hash)
        return state.withLock { state in
            guard !state.old.contains(mark), state.young.insert(mark).inserted else { return false }
            if state.young.count >= limit {
                state.old = state.young
                state.young = []
            }
            return true
        }
    }
}
