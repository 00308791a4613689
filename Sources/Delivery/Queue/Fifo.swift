/// A queue on an array: constant time at both ends, storage given back when it empties.
package struct Fifo<Element: Sendable>: Sendable {
    private var items: [Element?] = []
    private var head = 0

    package init() {}

    package var count: Int { items.count - head }
    package var isEmpty: Bool { items.count == head }
    var first: Element? { isEmpty ? nil : items[head] }

    package mutating func append(_ element: Element) { items.append(element) }

    package mutating func popFirst() -> Element? {
        guard head < items.count else { return nil }
        let element = items[head]
        items[head] = nil
        head += 1
        if head == items.count {
            items.removeAll(keepingCapacity: items.count <= 256)
            head = 0
        } else if head >= 1024, head * 2 >= items.count {
            items.removeFirst(head)
            head = 0
        }
        return element
    }

    mutating func popLast() -> Element? {
        guard !isEmpty else { return nil }
        return items.removeLast()
    }

    /// Linear: the first that fits.
    func first(where condition: (Element) -> Bool) -> Element? {
        for index in head..<items.count {
            if let element = items[index], condition(element) { return element }
        }
        return nil
    }

    /// Linear: takes the first that fits out.
    mutating func removeFirst(where condition: (Element) -> Bool) -> Element? {
        for index in head..<items.count {
            guard let element = items[index], condition(element) else { continue }
            items.remove(at: index)
            return element
        }
        return nil
    }

    /// Linear; what stays is moved only when something goes.
    mutating func remove(where condition: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        var kept: [Element?] = []
        for index in head..<items.count {
            guard let element = items[index] else { continue }
            if condition(element) {
                if removed.isEmpty { kept = Array(items[head..<index]) }
                removed.append(element)
            } else if !removed.isEmpty {
                kept.append(element)
            }
        }
        guard !removed.isEmpty else { return [] }
        items = kept
        head = 0
        return removed
    }
}
