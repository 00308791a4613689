import Glibc
package import SessionPush

/// What is kept of one subscription: sixteen bytes.
package struct WatchEntry: Sendable, Hashable {
    /// Where its account stands in the ring.
    package var point: UInt64
    /// Under which its row is read again. Another revision is another entry.
    package var revision: UInt64

    package init(point: UInt64, revision: UInt64) {
        self.point = point
        self.revision = revision
    }
}

/// All subscriptions, in the order of their revisions.
///
/// The memory grows by steps and without a second copy, because a million of them must fit into 16 MiB.
package struct WatchTable: ~Copyable {
    private struct Slot {
        var point: UInt64
        /// The revision, and in the last bit whether the entry has gone.
        var mark: UInt64
    }

    /// Room is taken in steps of 256 KiB.
    private static let step = 16_384
    private var slots: UnsafeMutablePointer<Slot>?
    private var capacity = 0
    private var filled = 0
    private var gone = 0

    package init() {}

    deinit { free(slots) }

    /// Subscriptions in the rotation.
    package var count: Int { filled - gone }

    /// Memory that it takes.
    package var bytes: Int { capacity * MemoryLayout<Slot>.stride }

    /// The last revision that was added.
    package var last: UInt64 { filled == 0 ? 0 : (slots.map { $0[filled - 1].mark } ?? 0) >> 1 }

    /// Adds an entry, unless its revision is no later than the last.
    package mutating func add(_ entry: WatchEntry) {
        guard entry.revision > last, entry.revision < 1 << 63 else { return }
        if filled == capacity { grow() }
        slots?[filled] = Slot(point: entry.point, mark: entry.revision << 1)
        filled += 1
    }

    /// Takes an entry out of the rotation.
    package mutating func remove(_ revision: UInt64) {
        let at = index(after: revision &- 1)
        guard at < filled, let slots, slots[at].mark == revision << 1 else { return }
        slots[at].mark |= 1
        gone += 1
        // The last stays for its revision's sake.
        if gone > 1_024, gone > filled / 4 { sweep() }
    }

    /// The next entries of a swarm behind a revision.
    ///
    /// - Returns: at most `limit` revisions, and up to which one was looked.
    package func next(
        after revision: UInt64, in arc: SwarmArc, limit: Int
    ) -> (revisions: [UInt64], through: UInt64) {
        guard let slots else { return ([], revision) }
        var found: [UInt64] = []
        var at = index(after: revision)
        while at < filled, found.count < limit {
            let slot = slots[at]
            if slot.mark & 1 == 0, arc.contains(slot.point) { found.append(slot.mark >> 1) }
            at += 1
        }
        let through = at == 0 ? revision : max(revision, slots[at - 1].mark >> 1)
        return (found, through)
    }

    /// The first entry with a later revision.
    private func index(after revision: UInt64) -> Int {
        guard let slots else { return 0 }
        var (low, high) = (0, filled)
        while low < high {
            let middle = (low + high) / 2
            if slots[middle].mark >> 1 <= revision { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func grow() {
        capacity += Self.step
        // Large blocks are moved by the kernel, page by page.
        guard let memory = realloc(slots, capacity * MemoryLayout<Slot>.stride) else {
            preconditionFailure("no memory for the table of watches")
        }
        slots = memory.bindMemory(to: Slot.self, capacity: capacity)
    }

    private mutating func sweep() {
        guard let slots else { return }
        var kept = 0
        for at in 0..<filled where slots[at].mark & 1 == 0 || at == filled - 1 {
            slots[kept] = slots[at]
            kept += 1
        }
        gone = slots[kept - 1].mark & 1 == 1 ? 1 : 0
        filled = kept
    }
}
