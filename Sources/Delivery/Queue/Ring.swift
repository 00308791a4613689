/// The last so many elements, in storage that is filled once and stays: half of what a queue that moves
/// through its storage takes.
struct Ring<Element: Sendable>: Sendable {
    private let capacity: Int
    private var elements: [Element] = []
    /// The oldest, once all places are taken.
    private var next = 0

    init(_ capacity: Int) { self.capacity = capacity }

    /// - Returns: what goes for it: the oldest, once all places are taken.
    mutating func append(_ element: Element) -> Element? {
        guard elements.count >= capacity else {
            elements.append(element)
            return nil
        }
        guard capacity > 0 else { return element }
        let oldest = elements[next]
        elements[next] = element
        next = next + 1 == capacity ? 0 : next + 1
        return oldest
    }
}
