import Synchronization

/// The hashes of messages that have already come, in two generations: the older is dropped when the younger
/// is full. So a message is remembered for at least ``WakuLimits/seenMessages`` others.
///
/// A message counts as seen once it has been taken. Until then it is under way, and the same message is
/// skipped meanwhile; if it is not taken, it is new when the store returns it again.
package final class SeenWakuMessages: Sendable {
    private struct State {
        var young: Set<Mark> = []
        var old: Set<Mark> = []
        /// As many as wait in the queue and at workers.
        var underWay: Set<Mark> = []
    }

    /// The first half of a hash: sixteen bytes of SHA-256 are enough, because somebody who made two messages
    /// with the same half would only hide the second.
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
    /// - Returns: whether it is new and must be offered; then ``end(_:isTaken:)`` follows.
    package func begin(_ hash: [UInt8]) -> Bool {
        let mark = Mark(hash)
        return state.withLock { isNew(mark, $0) && $0.underWay.insert(mark).inserted }
    }

    /// - Parameter isTaken: it is in custody, or needs none.
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
