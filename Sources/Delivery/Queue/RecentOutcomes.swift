import PushModel

/// The last so many first outcomes, by push. A value.
///
/// Every push enters one and takes the oldest out. Ids and outcomes stand in rings that are filled once, and
/// a table finds their places there, two bytes a slot. A dictionary beside a ring has each id twice, and half
/// of its slots are empty: two and a half times the memory.
struct RecentOutcomes: Sendable {
    private let capacity: Int
    private var ids: [PushID] = []
    private var outcomes: [FirstOutcome] = []
    /// The oldest, once all places are taken.
    private var next = 0
    /// One more than a place; 0: free. Searched from the slot of an id's hash up to a free one, of which
    /// there are as many as taken ones at least.
    private var slots: [UInt16] = []

    /// - Parameter capacity: 65,534 at most.
    init(_ capacity: Int) { self.capacity = min(capacity, Int(UInt16.max) - 1) }

    var count: Int { ids.count }

    subscript(_ id: PushID) -> FirstOutcome? { find(id).map { outcomes[Int(slots[$0]) - 1] } }

    /// Enters what is known of a push. What was known before stays, unless it was pending.
    ///
    /// - Returns: the push that is forgotten for it.
    mutating func note(_ outcome: FirstOutcome, of id: PushID) -> PushID? {
        guard capacity > 0 else { return id }
        if let known = find(id) {
            let place = Int(slots[known]) - 1
            if case .pending = outcomes[place] { outcomes[place] = outcome }
            return nil
        }
        if slots.isEmpty { slots = Array(repeating: 0, count: Self.slots(for: capacity)) }
        guard ids.count == capacity else {
            ids.append(id)
            outcomes.append(outcome)
            enter(ids.count - 1)
            return nil
        }
        let oldest = ids[next]
        if let slot = find(oldest) { free(slot) }
        (ids[next], outcomes[next]) = (id, outcome)
        enter(next)
        next = next + 1 == capacity ? 0 : next + 1
        return oldest
    }

    /// A power of two, twice as many as places at least.
    private static func slots(for capacity: Int) -> Int {
        var count = 2
        while count < capacity * 2 { count *= 2 }
        return count
    }

    private func home(_ id: PushID) -> Int { id._rawHashValue(seed: 0) & (slots.count - 1) }

    private func find(_ id: PushID) -> Int? {
        guard !slots.isEmpty else { return nil }
        var slot = home(id)
        // Ends, because half of the slots are free.
        while slots[slot] > 0 {
            if ids[Int(slots[slot]) - 1] == id { return slot }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    private mutating func enter(_ place: Int) {
        var slot = home(ids[place])
        while slots[slot] > 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = UInt16(truncatingIfNeeded: place + 1)
    }

    /// What stands behind it moves up, as far as it may, so that every search still ends behind what it
    /// finds.
    private mutating func free(_ slot: Int) {
        let mask = slots.count - 1
        var hole = slot
        var at = (slot + 1) & mask
        while slots[at] > 0 {
            let start = home(ids[Int(slots[at]) - 1])
            if (at &- start) & mask >= (at &- hole) & mask {
                slots[hole] = slots[at]
                hole = at
            }
            at = (at + 1) & mask
        }
        slots[hole] = 0
    }
}
