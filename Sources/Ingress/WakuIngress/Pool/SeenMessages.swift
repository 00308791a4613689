import Synchronization

/// Which messages came already, by their hashes: two generations, of which the older goes when the younger is
/// full. So a message is remembered for at least ``WakuLimits/seenMessages`` others.
///
/// A message counts as seen once somebody has taken it. Until then it is under way, and the same message that
/// comes meanwhile is passed over; if nobody takes it, it is new when the store hands it out again.
package final class SeenMessages: Sendable {
    private struct State {
        var young: Set<Mark> = []
        var old: Set<Mark> = []
        /// As many as wait in the queue and at workers.
        var underWay: Set<Mark> = []
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

    /// Notes a message that needs nobody to take it.
    ///
    /// - Parameter hash: 32 bytes (14/WAKU2-MESSAGE).
    /// - Returns: whether it is new.
    package func note(_ hash: [UInt8]) -> Bool {
        let mark = Mark(hash)
        return state.withLock { state in
            let isNew = !state.underWay.contains(mark) && isNew(mark, state)
            if isNew { remember(mark, &state) }
            return isNew
        }
    }

    /// A message has come.
    ///
    /// - Returns: whether it is new, and to be offered to whoever takes it; then ``end(_:isTaken:)`` follows.
    package func begin(_ hash: [UInt8]) -> Bool {
        let mark = Mark(hash)
        return state.withLock { isNew(mark, $0) && $0.underWay.insert(mark).inserted }
    }

    /// - Parameter isTaken: it is in somebody's custody, or needs none.
    package func end(_ hash: [UInt8], isTaken: Bool) {
        let mark = Mark(hash)
        state.withLock { state in
            state.underWay.remove(mark)
            if isTaken { remember(mark, &state) }
        }
    }

    private func isNew(_ mark: Mark, _ state: borrowing State) -> Bool {
        !state.old.contains(mark) && !state.young.contains(mark)
    }

    private func remember(_ mark: Mark, _ state: inout State) {
        state.young.insert(mark)
        guard state.young.count >= limit else { return }
        state.old = state.young
        state.young = []
    }
}
