/// Waiting items, in one share for each source. Items are taken from the shares in turn, so a flood from one
/// source delays another source's item by at most one item of each share.
///
/// It counts bytes but bounds nothing: the caller decides when a share is full.
struct FairShares<Key: Hashable & Sendable, Item: Sendable>: Sendable {
    private struct Share: Sendable {
        var items = Fifo<(item: Item, bytes: Int)>()
        var bytes = 0
    }

    private var shares: [Key: Share] = [:]
    /// Keys with something to take, in their turn.
    private var turns = Fifo<Key>()
    private(set) var count = 0

    init() {}

    var isEmpty: Bool { count == 0 }
    /// Bytes that one key's items take; 0: it has none.
    func bytes(of key: Key) -> Int { shares[key]?.bytes ?? 0 }
    func holds(_ key: Key) -> Bool { shares[key] != nil }

    mutating func append(_ item: Item, bytes: Int, of key: Key) {
        if !holds(key) { turns.append(key) }
        shares[key, default: Share()].items.append((item, bytes))
        shares[key]?.bytes += bytes
        count += 1
    }

    /// The next in turn.
    mutating func pop() -> (key: Key, item: Item)? {
        guard let key = turns.popFirst(), let next = shares[key]?.items.popFirst() else { return nil }
        shares[key]?.bytes -= next.bytes
        count -= 1
        if shares[key]?.items.isEmpty == true { shares[key] = nil } else { turns.append(key) }
        return (key, next.item)
    }
}
