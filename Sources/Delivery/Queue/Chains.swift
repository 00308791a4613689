/// Chains through the places of an array: who stands before and behind each place. A place is in one chain of
/// these at a time, and every step takes constant time.
struct Chains: Sendable {
    /// The ends of one chain. The owner of the chain keeps them.
    struct Ends: Sendable {
        /// -1: it is empty.
        fileprivate(set) var first = -1
        fileprivate(set) var last = -1

        var isEmpty: Bool { first < 0 }
        var hasSeveral: Bool { first != last }
    }

    private var links: [(previous: Int, next: Int)] = []

    /// The place behind, in its chain; -1: none.
    func next(of place: Int) -> Int { links[place].next }

    /// Adds a place that is in no chain.
    mutating func addPlace() { links.append((-1, -1)) }

    mutating func append(_ place: Int, to chain: inout Ends) {
        links[place] = (chain.last, -1)
        if chain.last >= 0 { links[chain.last].next = place } else { chain.first = place }
        chain.last = place
    }

    mutating func prepend(_ place: Int, to chain: inout Ends) {
        links[place] = (-1, chain.first)
        if chain.first >= 0 { links[chain.first].previous = place } else { chain.last = place }
        chain.first = place
    }

    mutating func remove(_ place: Int, from chain: inout Ends) {
        let (previous, next) = links[place]
        if previous >= 0 { links[previous].next = next } else { chain.first = next }
        if next >= 0 { links[next].previous = previous } else { chain.last = previous }
    }

    /// Puts the first place behind all others.
    mutating func rotate(_ chain: inout Ends) {
        guard chain.hasSeveral else { return }
        let place = chain.first
        remove(place, from: &chain)
        append(place, to: &chain)
    }
}

/// Those that hold several, by how many. Those that hold one or none are not listed: most pushes come to an
/// empty queue, and leave it at once.
struct Ranks: Sendable {
    /// Those that hold two, three and so on.
    private var chains: [Chains.Ends] = []
    /// How many the fullest holds; 0: nobody holds several.
    private(set) var most = 0

    /// One that holds most; `nil`: nobody holds several.
    var fullest: Int? { most > 0 ? chains[most - 2].first : nil }

    mutating func move(_ place: Int, from old: Int, to new: Int, _ links: inout Chains) {
        guard old > 1 || new > 1 else { return }
        if old > 1 { links.remove(place, from: &chains[old - 2]) }
        if new > 1 {
            while chains.count < new - 1 { chains.append(Chains.Ends()) }
            links.prepend(place, to: &chains[new - 2])
            most = max(most, new)
        }
        while most > 1, chains[most - 2].isEmpty { most -= 1 }
        if most < 2 { most = 0 }
    }
}
