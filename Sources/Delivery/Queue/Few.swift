/// A list that nearly always has one element at most, which is stored inline and not in an allocation.
struct Few<Element: Sendable>: Sendable, MutableCollection, RandomAccessCollection {
    private var head: Element?
    /// None without a head.
    private var others: [Element] = []

    init() {}

    init(_ elements: some Sequence<Element>) { for element in elements { append(element) } }

    var startIndex: Int { 0 }
    var endIndex: Int { head == nil ? 0 : 1 + others.count }

    subscript(position: Int) -> Element {
        get {
            guard position == 0 else { return others[position - 1] }
            guard let head else { preconditionFailure("an element that the list has") }
            return head
        }
        set {
            guard position == 0 else { return others[position - 1] = newValue }
            precondition(head != nil, "an element that the list has")
            head = newValue
        }
    }

    mutating func append(_ element: Element) {
        if head == nil { head = element } else { others.append(element) }
    }

    /// Puts an element before all others.
    mutating func prepend(_ element: Element) {
        if let second = head { others.insert(second, at: 0) }
        head = element
    }

    static func += (list: inout Few, more: Few) { for element in more { list.append(element) } }
}
