package import SessionPush

/// What is kept of one subscription.
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

/// All subscriptions, in the order of their revisions: twelve bytes each.
///
/// A million of them must fit into 16 MiB with all that reads them. So the table grows by pieces that never
/// move: a growing block would be copied, because freed memory is wiped (docs/decisions/0015), and both
/// copies would exist at once. Revisions of a piece are counted from its first.
package struct WatchTable: ~Copyable {
    private struct Piece {
        let base: UInt64
        var points: [UInt64] = []
        /// Distance from the base, and in the last bit whether the entry has gone.
        var marks: [UInt32] = []

        init(base: UInt64) {
            self.base = base
            points.reserveCapacity(WatchTable.step)
            marks.reserveCapacity(WatchTable.step)
        }

        func revision(_ at: Int) -> UInt64 { base + UInt64(marks[at] >> 1) }

        func takes(_ revision: UInt64) -> Bool { marks.count < WatchTable.step && revision - base < 1 << 31 }

        mutating func append(_ entry: WatchEntry) {
            points.append(entry.point)
            marks.append(UInt32(entry.revision - base) << 1)
        }

        mutating func giveBack() { (points, marks) = ([], []) }

        /// The first entry with a later revision.
        func index(after revision: UInt64) -> Int {
            var (low, high) = (0, marks.count)
            while low < high {
                let middle = (low + high) / 2
                if self.revision(middle) <= revision { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    /// Room is taken in steps of 48 KiB.
    private static let step = 4_096
    private var pieces: [Piece] = []
    private var filled = 0
    private var gone = 0
    /// The last revision that was added.
    package private(set) var last: UInt64 = 0

    package init() {}

    /// Subscriptions in the rotation.
    package var count: Int { filled - gone }

    /// Memory that it takes.
    package var bytes: Int {
        pieces.reduce(0) {
            $0 + $1.points.capacity * MemoryLayout<UInt64>.stride
                + $1.marks.capacity * MemoryLayout<UInt32>.stride
        }
    }

    /// Adds an entry, unless its revision is no later than the last.
    package mutating func add(_ entry: WatchEntry) {
        guard entry.revision > last, entry.revision < 1 << 63 else { return }
        last = entry.revision
        append(entry)
    }

    /// Takes an entry out of the rotation.
    package mutating func remove(_ revision: UInt64) {
        let (piece, at) = position(after: revision &- 1)
        guard piece < pieces.count, at < pieces[piece].marks.count,
            pieces[piece].revision(at) == revision, pieces[piece].marks[at] & 1 == 0
        else { return }
        pieces[piece].marks[at] |= 1
        gone += 1
        if gone > 1_024, gone > filled / 4 { sweep() }
    }

    /// The next entries of a swarm behind a revision.
    ///
    /// - Returns: at most `limit` revisions, and up to which one was looked.
    package func next(
        after revision: UInt64, in arc: SwarmArc, limit: Int
    ) -> (revisions: [UInt64], through: UInt64) {
        var found: [UInt64] = []
        var (piece, at) = position(after: revision)
        while piece < pieces.count {
            while at < pieces[piece].marks.count {
                if pieces[piece].marks[at] & 1 == 0, arc.contains(pieces[piece].points[at]) {
                    found.append(pieces[piece].revision(at))
                    if found.count >= limit { return (found, pieces[piece].revision(at)) }
                }
                at += 1
            }
            (piece, at) = (piece + 1, 0)
        }
        return (found, max(revision, last))
    }

    /// The first entry with a later revision: in which piece, and where there. It may stand at the piece's
    /// end, and then begins the next one.
    private func position(after revision: UInt64) -> (piece: Int, at: Int) {
        var (low, high) = (0, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if pieces[middle].base <= revision { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return (0, 0) }
        let at = pieces[low - 1].index(after: revision)
        return at < pieces[low - 1].marks.count ? (low - 1, at) : (low, 0)
    }

    private mutating func append(_ entry: WatchEntry) {
        if pieces.last?.takes(entry.revision) != true { pieces.append(Piece(base: entry.revision)) }
        pieces[pieces.count - 1].append(entry)
        filled += 1
    }

    /// Packs what is left; each old piece is given back before the next is looked at.
    private mutating func sweep() {
        var old = pieces
        (pieces, filled, gone) = ([], 0, 0)
        for index in old.indices {
            let piece = old[index]
            old[index].giveBack()
            for at in piece.marks.indices where piece.marks[at] & 1 == 0 {
                append(WatchEntry(point: piece.points[at], revision: piece.revision(at)))
            }
        }
    }
}
