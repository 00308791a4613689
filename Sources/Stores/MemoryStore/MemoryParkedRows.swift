import PushModel

/// A heap of rows by a moment, the earliest first. Rows that have changed since stay in it until they come
/// up; the caller says which still count.
struct MomentHeap: Sendable {
    struct Item: Sendable {
        var at: UnixTime
        var row: Int64

        static func < (left: Item, right: Item) -> Bool { (left.at, left.row) < (right.at, right.row) }
    }

    private var items: [Item] = []
    var isEmpty: Bool { items.isEmpty }
    var count: Int { items.count }

    mutating func insert(_ item: Item) {
        items.append(item)
        var child = items.count - 1
        while child > 0, items[child] < items[(child - 1) / 2] {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// The earliest that counts; entries before it that do not count are dropped.
    mutating func first(_ counts: (Item) -> Bool) -> Item? {
        while let item = items.first {
            if counts(item) { return item }
            _ = removeFirst()
        }
        return nil
    }

    mutating func removeFirst() -> Item? {
        guard let last = items.popLast() else { return nil }
        guard let first = items.first else { return last }
        items[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < items.count && items[child] < items[least] {
                least = child
            }
            guard least != parent else { return first }
            items.swapAt(parent, least)
            parent = least
        }
    }
}

/// The parked rows of one lane and class: origins taking turns, each one's rows by due time.
///
/// The cost of a claim depends on the rows that it takes and skips, not on how many are parked.
struct MemoryParkedRows: Sendable {
    private var rows: [Digest16: MomentHeap] = [:]
    /// Origins in order of their turn, read from `head` on.
    private var turns: [Digest16] = []
    private var head = 0

    mutating func insert(_ item: MomentHeap.Item, of origin: Digest16) {
        if rows[origin] == nil {
            rows[origin] = MomentHeap()
            turns.append(origin)
        }
        rows[origin]?.insert(item)
    }

    /// Takes what is due, one row of each origin in turn.
    ///
    /// - Parameters:
    ///   - counts: false drops a row that is no longer parked as it was.
    ///   - mayTake: false leaves a row where it is: another process owns it.
    mutating func take(
        due: UnixTime, limit: Int, counts: (MomentHeap.Item) -> Bool, mayTake: (MomentHeap.Item) -> Bool
    ) -> [Int64] {
        var taken: [Int64] = []
        var passedOver = 0
        while taken.count < limit, head < turns.count, passedOver < turns.count - head {
            let origin = turns[head]
            head += 1
            guard var own = rows.removeValue(forKey: origin) else { continue }
            var aside: [MomentHeap.Item] = []
            var next: Int64?
            while next == nil, let item = own.first(counts), item.at <= due {
                _ = own.removeFirst()
                if mayTake(item) { next = item.row } else { aside.append(item) }
            }
            for item in aside { own.insert(item) }
            if !own.isEmpty {
                rows[origin] = own
                turns.append(origin)
            }
            if let next {
                taken.append(next)
                passedOver = 0
            } else if !own.isEmpty {
                passedOver += 1
            }
            if head > 1_024, head * 2 > turns.count {
                turns.removeFirst(head)
                head = 0
            }
        }
        return taken
    }

    /// When the earliest of those that may be taken is due.
    mutating func earliest(
        counts: (MomentHeap.Item) -> Bool, mayTake: (MomentHeap.Item) -> Bool
    ) -> UnixTime? {
        var earliest: UnixTime?
        for origin in Array(rows.keys) {
            guard var own = rows.removeValue(forKey: origin) else { continue }
            var aside: [MomentHeap.Item] = []
            while let item = own.first(counts) {
                if mayTake(item) {
                    earliest = min(earliest ?? item.at, item.at)
                    break
                }
                aside.append(own.removeFirst() ?? item)
            }
            for item in aside { own.insert(item) }
            rows[origin] = own
        }
        return earliest
    }
}
