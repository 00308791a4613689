import PushModel

/// Retries that sleep, the earliest first.
struct SleepHeap: Sendable {
    private var items: [LaneQueue.Entry] = []
    var count: Int { items.count }
    var first: LaneQueue.Entry? { items.first }
    var last: LaneQueue.Entry? { items.last }

    /// The last element of the array is a leaf: without it the rest is still a heap.
    mutating func removeLast() -> LaneQueue.Entry? { items.popLast() }

    mutating func insert(_ entry: LaneQueue.Entry) {
        items.append(entry)
        var child = items.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard items[child].push.notBefore < items[parent].push.notBefore else { break }
            items.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeFirst() -> LaneQueue.Entry? {
        guard let last = items.popLast() else { return nil }
        guard let first = items.first else { return last }
        items[0] = last
        sink(from: 0)
        return first
    }

    /// Linear in what sleeps; what stays is moved only when something goes.
    mutating func remove(where condition: (LaneQueue.Entry) -> Bool) -> [LaneQueue.Entry] {
        var removed: [LaneQueue.Entry] = []
        var kept: [LaneQueue.Entry] = []
        for (index, entry) in items.enumerated() {
            if condition(entry) {
                if removed.isEmpty { kept = Array(items[..<index]) }
                removed.append(entry)
            } else if !removed.isEmpty {
                kept.append(entry)
            }
        }
        guard !removed.isEmpty else { return [] }
        items = kept
        for parent in (0..<items.count / 2).reversed() { sink(from: parent) }
        return removed
    }

    private mutating func sink(from start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < items.count && items[child].push.notBefore < items[least].push.notBefore {
                least = child
            }
            guard least != parent else { return }
            items.swapAt(parent, least)
            parent = least
        }
    }
}
