import PushModel

/// One class of a lane's queue. Those who hold turns (``Turns``) take them one after the other, and within
/// one holder's turns its phones do.
///
/// Two levels, because one is not enough. All pushes of one client or key belong to one holder, however many
/// phones and users they name; and a flood to one phone delays no other phone of the same server.
///
/// A full queue asks for the fullest holder at every new push, and a call must not wait for a walk over
/// thousands. So everything is linked (``Chains``), and every step takes constant time but for
/// ``remove(where:)``, ``durableOrigins(atMost:)`` and ``take(of:atMost:where:)``.
struct LaneRound: Sendable {
    /// What one holder has for one phone, the oldest first. It stands in its holder's turns while it has
    /// something.
    private struct Row: Sendable {
        var holder: Int
        var address: Int
        var entries = Chains.Ends()
        var count = 0
        /// Stands in `buckets`: all rows do whose holder has had several.
        var isNamed = false
    }

    private struct Holder: Sendable {
        var origin: Digest16
        /// Its rows, in order of their turns.
        var rows = Chains.Ends()
        /// The fullest of them.
        var ranks = Ranks()
        var count = 0
    }

    /// Places that an empty round keeps.
    private static let keptPlaces = 256
    /// The least number of buckets; a power of two.
    private static let fewestBuckets = 64

    private var entries: [LaneQueue.Entry?] = []
    private var entryChains = Chains()
    private var freeEntries = Chains.Ends()

    private var rows: [Row] = []
    private var rowTurns = Chains()
    private var rowRanks = Chains()
    private var freeRows = Chains.Ends()
    /// Rows by holder and address, as many buckets as rows at least.
    private var buckets: [Chains.Ends] = []
    private var rowBuckets = Chains()
    private var named = 0

    private var holders: [Holder] = []
    private var holderTurns = Chains()
    private var holderRanks = Chains()
    private var freeHolders = Chains.Ends()
    private var places: [Digest16: Int] = [:]

    /// Holders in order of their turns.
    private var turns = Chains.Ends()
    private var ranks = Ranks()
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    // MARK: in and out

    mutating func append(_ entry: consuming LaneQueue.Entry) { insert(entry, isFirst: false) }

    /// Puts it at the front of its row; a holder or phone without a turn gets the next one.
    mutating func putBack(_ entry: LaneQueue.Entry) { insert(entry, isFirst: true) }

    mutating func take() -> LaneQueue.Entry? {
        guard !turns.isEmpty else { return nil }
        let holder = turns.first
        let row = holders[holder].rows.first
        let entry = remove(rows[row].entries.first, of: row)
        // An empty row or holder is in no chain.
        if rows[row].count > 0 { rowTurns.rotate(&holders[holder].rows) }
        if holders[holder].count > 0 { holderTurns.rotate(&turns) }
        shrink()
        return entry
    }

    /// Takes a holder's first entry that fits, out of turn: linear in what that holder has here, of which no
    /// more than `limit` are looked at.
    mutating func take(
        of origin: Digest16, atMost limit: Int, where fits: (LaneQueue.Entry) -> Bool
    ) -> LaneQueue.Entry? {
        guard let holder = places[origin] else { return nil }
        var left = limit
        var row = holders[holder].rows.first
        while row >= 0 {
            var place = rows[row].entries.first
            while place >= 0 {
                guard left > 0 else { return nil }
                left -= 1
                if let entry = entries[place], fits(entry) {
                    defer { shrink() }
                    return remove(place, of: row)
                }
                place = entryChains.next(of: place)
            }
            row = rowTurns.next(of: row)
        }
        return nil
    }

    mutating func remove(where condition: (LaneQueue.Entry) -> Bool) -> [LaneQueue.Entry] {
        var removed: [LaneQueue.Entry] = []
        var holder = turns.first
        while holder >= 0 {
            let nextHolder = holderTurns.next(of: holder)
            var row = holders[holder].rows.first
            while row >= 0 {
                let nextRow = rowTurns.next(of: row)
                var place = rows[row].entries.first
                while place >= 0 {
                    let next = entryChains.next(of: place)
                    if let entry = entries[place], condition(entry), let gone = remove(place, of: row) {
                        removed.append(gone)
                    }
                    place = next
                }
                row = nextRow
            }
            holder = nextHolder
        }
        shrink()
        return removed
    }

    // MARK: room

    /// Whether a push of this holder and phone would replace another push: one of the fullest holder, if that
    /// holder would still hold more, or else one of this holder's fullest phone, by the same rule.
    func yields(to origin: Digest16, _ address: () -> Int) -> Bool {
        guard let holder = places[origin] else { return ranks.most > 1 }
        let own = holders[holder]
        if ranks.most > own.count + 1 { return true }
        guard own.ranks.most > 1 else { return false }
        return own.ranks.most > count(of: holder, address()) + 1
    }

    /// The newest entry of the holder that makes room for that push.
    mutating func makeRoom(for push: LaneQueue.Entry) -> LaneQueue.Entry? {
        guard yields(to: push.push.origin, { push.address }) else { return nil }
        guard let own = places[push.push.origin], ranks.most <= holders[own].count + 1 else {
            return removeNewestOfFullest()
        }
        return removeNewest(of: own)
    }

    /// The newest entry of the fullest phone of the holder that has most.
    mutating func removeNewestOfFullest() -> LaneQueue.Entry? {
        let holder = ranks.fullest ?? turns.last
        return holder < 0 ? nil : removeNewest(of: holder)
    }

    /// Some holders whose next push is durable, at most so many.
    func durableOrigins(atMost most: Int) -> [Digest16] {
        var found: [Digest16] = []
        var holder = turns.first
        while holder >= 0, found.count < most {
            let next = rows[holders[holder].rows.first].entries.first
            if entries[next]?.push.isDurable ?? false { found.append(holders[holder].origin) }
            holder = holderTurns.next(of: holder)
        }
        return found
    }

    private mutating func removeNewest(of holder: Int) -> LaneQueue.Entry? {
        let row = holders[holder].ranks.fullest ?? holders[holder].rows.last
        defer { shrink() }
        return remove(rows[row].entries.last, of: row)
    }

    private func count(of holder: Int, _ address: Int) -> Int {
        row(of: holder, address).map { rows[$0].count } ?? 0
    }

    // MARK: rows and holders

    /// - Parameter entry: moved into its place: an entry is large.
    private mutating func insert(_ entry: consuming LaneQueue.Entry, isFirst: Bool) {
        let holder = holder(of: entry.push.origin, isFirst)
        let row = row(of: holder, entry.address) ?? addRow(of: holder, entry.address, isFirst)
        let place = freeEntries.first
        if place < 0 {
            entries.append(entry)
            entryChains.addPlace()
        } else {
            entryChains.remove(place, from: &freeEntries)
            entries[place] = entry
        }
        let at = place < 0 ? entries.count - 1 : place
        if isFirst {
            entryChains.prepend(at, to: &rows[row].entries)
        } else {
            entryChains.append(at, to: &rows[row].entries)
        }
        count(row, by: 1)
    }

    /// Rows and holders that become empty are removed.
    private mutating func remove(_ place: Int, of row: Int) -> LaneQueue.Entry? {
        var entry: LaneQueue.Entry?
        swap(&entry, &entries[place])
        entryChains.remove(place, from: &rows[row].entries)
        entryChains.prepend(place, to: &freeEntries)
        count(row, by: -1)
        let holder = rows[row].holder
        if rows[row].count == 0 {
            rowTurns.remove(row, from: &holders[holder].rows)
            rowTurns.prepend(row, to: &freeRows)
            if rows[row].isNamed { unname(row) }
        }
        if holders[holder].count == 0 {
            holderTurns.remove(holder, from: &turns)
            holderTurns.prepend(holder, to: &freeHolders)
            places[holders[holder].origin] = nil
        }
        return entry
    }

    private mutating func count(_ row: Int, by step: Int) {
        let holder = rows[row].holder
        let (inRow, inHolder) = (rows[row].count, holders[holder].count)
        rows[row].count += step
        holders[holder].count += step
        count += step
        holders[holder].ranks.move(row, from: inRow, to: inRow + step, &rowRanks)
        ranks.move(holder, from: inHolder, to: inHolder + step, &holderRanks)
    }

    private func row(of holder: Int, _ address: Int) -> Int? {
        let chain = holders[holder].rows
        // Most holders have one phone here at a time.
        guard chain.hasSeveral else {
            return !chain.isEmpty && rows[chain.first].address == address ? chain.first : nil
        }
        var row = buckets[bucket(of: holder, address)].first
        while row >= 0, rows[row].address != address || rows[row].holder != holder {
            row = rowBuckets.next(of: row)
        }
        return row < 0 ? nil : row
    }

    /// An address's number is a hash that no outsider can compute, so nobody can fill one bucket on purpose.
    private func bucket(of holder: Int, _ address: Int) -> Int {
        (address ^ (holder &* 0x9E37_79B1)) & (buckets.count - 1)
    }

    private mutating func addRow(of holder: Int, _ address: Int, _ isFirst: Bool) -> Int {
        let first = holders[holder].rows.first
        if first >= 0, !rows[first].isNamed { name(first) }
        let row: Int
        if freeRows.isEmpty {
            row = rows.count
            rows.append(Row(holder: holder, address: address))
            rowTurns.addPlace()
            rowRanks.addPlace()
            rowBuckets.addPlace()
        } else {
            row = freeRows.first
            rowTurns.remove(row, from: &freeRows)
            rows[row] = Row(holder: holder, address: address)
        }
        if first >= 0 { name(row) }
        if isFirst {
            rowTurns.prepend(row, to: &holders[holder].rows)
        } else {
            rowTurns.append(row, to: &holders[holder].rows)
        }
        return row
    }

    private mutating func name(_ row: Int) {
        if named == buckets.count {
            buckets = [Chains.Ends](
                repeating: Chains.Ends(), count: max(Self.fewestBuckets, 2 * buckets.count))
            for row in rows.indices where rows[row].isNamed { enter(row) }
        }
        rows[row].isNamed = true
        named += 1
        enter(row)
    }

    private mutating func enter(_ row: Int) {
        rowBuckets.append(row, to: &buckets[bucket(of: rows[row].holder, rows[row].address)])
    }

    private mutating func unname(_ row: Int) {
        rowBuckets.remove(row, from: &buckets[bucket(of: rows[row].holder, rows[row].address)])
        rows[row].isNamed = false
        named -= 1
    }

    private mutating func holder(of origin: Digest16, _ isFirst: Bool) -> Int {
        if let holder = places[origin] { return holder }
        let holder: Int
        if freeHolders.isEmpty {
            holder = holders.count
            holders.append(Holder(origin: origin))
            holderTurns.addPlace()
            holderRanks.addPlace()
        } else {
            holder = freeHolders.first
            holderTurns.remove(holder, from: &freeHolders)
            holders[holder] = Holder(origin: origin)
        }
        places[origin] = holder
        if isFirst { holderTurns.prepend(holder, to: &turns) } else { holderTurns.append(holder, to: &turns) }
        return holder
    }

    /// Gives back the memory of a flood after it.
    private mutating func shrink() {
        if count == 0, entries.count > Self.keptPlaces { self = LaneRound() }
    }
}
