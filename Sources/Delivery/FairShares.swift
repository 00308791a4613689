/// Waiting items, in one share for each source. Items are taken from the shares in turn, so a flood from one
/// source delays another source's item by at most one item of each share.
///
/// It counts bytes but bounds nothing: the caller decides when a share is full.
package struct FairShares<Key: Hashable & Sendable, Item: Sendable>: Sendable {
    private struct Share: Sendable {
        var items = Fifo<(item: Item, bytes: Int)>()
        var bytes = 0
    }

    private var shares: [Key: Share] = [:]
    /// Keys with something to take, in their turn.
    private var turns = Fifo<Key>()
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }
    /// Bytes that one key's items take; 0: it has none.
    package func bytes(of key: Key) -> Int { shares[key]?.bytes ?? 0 }
    package func holds(_ key: Key) -> Bool { shares[key] != nil }

    package mutating func append(_ item: Item, bytes: Int, of key: Key) {
        if !holds(key) { turns.append(key) }
        shares[key, default: Share()].items.append((item, bytes))
        shares[key]?.bytes += bytes
        count += 1
    }

    /// The next in turn.
    package mutating func pop() -> (key: Key, item: Item)? {
        guard let key = turns.popFirst(), let next = shares[key]?.items.popFirst() else { return nil }
        shares[key]?.bytes -= next.bytes
        count -= 1
        if shares[key]?.items.isEmpty == true { shares[key] = nil } else { turns.append(key) }
        return (key, next.item)
    }
}

extension Fifo<CheckedContinuation<Void, Never>> {
    /// Resumes all waiters when there is nothing left to wait for.
    package func resumeAll() {
        var waiting = self
        while let one = waiting.popFirst() { one.resume() }
    }
}
