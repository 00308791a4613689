import PushModel

/// One class of a lane's queue: the origins that have something there, taking turns.
///
/// A full queue asks for the fullest origin at every push that comes, and a call must not wait for a walk
/// over thousands of origins; so rows of the same count are linked, and every step takes constant time. The
/// exceptions are ``remove(where:)``, and the sweep that follows a thousand rows emptied out of turn.
struct LaneRound: Sendable {
    /// One origin's entries, oldest first.
    private struct Row: Sendable {
        var origin: Digest16
        var entries = Fifo<LaneQueue.Entry>()
        /// Stands in `turns`, once. A row that was emptied out of turn stays until its turn comes.
        var hasTurn = false
        /// Neighbours among the rows that hold as many; none is -1.
        var previous = -1
        var next = -1
    }

    /// Emptied rows that may wait for their turn before all of them are swept.
    private static let emptiesLimit = 1_024

    private var rows: [Row] = []
    private var free: [Int] = []
    private var places: [Digest16: Int] = [:]
    /// Rows in order of their turn.
    private var turns = Fifo<Int>()
    /// The first row that holds n entries, at n; none is -1.
    private var heads: [Int] = [-1]
    private var empties = 0
    /// How many entries the fullest origin holds.
    private(set) var fullestCount = 0

    func count(of origin: Digest16) -> Int { places[origin].map { rows[$0].entries.count } ?? 0 }

    /// Some origins whose next push is durable, at most so many.
    func durableOrigins(atMost most: Int) -> [Digest16] {
        var found: [Digest16] = []
        for row in rows where found.count < most {
            if row.entries.first?.push.custody == .durable { found.append(row.origin) }
        }
        return found
    }

    mutating func append(_ entry: LaneQueue.Entry) {
        let place = place(for: entry.push.origin)
        rows[place].entries.append(entry)
        grew(place)
        if !rows[place].hasTurn {
            rows[place].hasTurn = true
            turns.append(place)
        }
    }

    /// At the front of its origin's row; an origin that has no turn has the next one.
    mutating func putBack(_ entry: LaneQueue.Entry) {
        let place = place(for: entry.push.origin)
        rows[place].entries.prepend(entry)
        grew(place)
        if !rows[place].hasTurn {
            rows[place].hasTurn = true
            turns.prepend(place)
        }
    }

    mutating func take() -> LaneQueue.Entry? {
        while let place = turns.popFirst() {
            guard let entry = rows[place].entries.popFirst() else {
                empties -= 1
                release(place)
                continue
            }
            let left = rows[place].entries.count
            relink(place, from: left + 1, to: left)
            if left == 0 { release(place) } else { turns.append(place) }
            return entry
        }
        return nil
    }

    /// Takes an origin's first entry that fits, out of turn: linear in what that origin has here, of which no
    /// more than `limit` are looked at.
    mutating func take(
        of origin: Digest16, atMost limit: Int, where fits: (LaneQueue.Entry) -> Bool
    ) -> LaneQueue.Entry? {
        guard let place = places[origin] else { return nil }
        var left = limit
        let entry = rows[place].entries.removeFirst { entry in
            left -= 1
            return left >= 0 && fits(entry)
        }
        guard let entry else { return nil }
        shrank(place, by: 1)
        if empties > Self.emptiesLimit { sweep() }
        return entry
    }

    /// The newest entry of the origin that holds most.
    mutating func removeNewestOfFullest() -> LaneQueue.Entry? {
        let place = heads[fullestCount]
        guard place >= 0, let entry = rows[place].entries.popLast() else { return nil }
        shrank(place, by: 1)
        if empties > Self.emptiesLimit { sweep() }
        return entry
    }

    mutating func remove(where condition: (LaneQueue.Entry) -> Bool) -> [LaneQueue.Entry] {
        var removed: [LaneQueue.Entry] = []
        for place in rows.indices where !rows[place].entries.isEmpty {
            let gone = rows[place].entries.remove(where: condition)
            if !gone.isEmpty { shrank(place, by: gone.count) }
            removed += gone
        }
        if empties > 0 { sweep() }
        return removed
    }

    private mutating func place(for origin: Digest16) -> Int {
        if let place = places[origin] { return place }
        let place: Int
        if let reused = free.popLast() {
            place = reused
            rows[place] = Row(origin: origin)
        } else {
            place = rows.count
            rows.append(Row(origin: origin))
        }
        places[origin] = place
        return place
    }

    /// After one entry more.
    private mutating func grew(_ place: Int) {
        let count = rows[place].entries.count
        if count == 1, rows[place].hasTurn { empties -= 1 }
        relink(place, from: count - 1, to: count)
    }

    /// After entries fewer, out of turn.
    private mutating func shrank(_ place: Int, by number: Int) {
        let count = rows[place].entries.count
        if count == 0 { empties += 1 }
        relink(place, from: count + number, to: count)
    }

    /// Gives an empty row's place to the origin that comes next.
    private mutating func release(_ place: Int) {
        places[rows[place].origin] = nil
        rows[place].entries = Fifo()
        rows[place].hasTurn = false
        free.append(place)
    }

    /// Takes the turns of emptied rows out.
    private mutating func sweep() {
        let gone = turns.remove { rows[$0].entries.isEmpty }
        for place in gone { release(place) }
        empties = 0
    }

    /// Moves a row from the list of one count to that of another; nothing is listed at zero.
    private mutating func relink(_ place: Int, from old: Int, to new: Int) {
        if old > 0 {
            let (previous, next) = (rows[place].previous, rows[place].next)
            if previous >= 0 { rows[previous].next = next } else { heads[old] = next }
            if next >= 0 { rows[next].previous = previous }
        }
        while heads.count <= new { heads.append(-1) }
        if new > 0 {
            let head = heads[new]
            rows[place].previous = -1
            rows[place].next = head
            if head >= 0 { rows[head].previous = place }
            heads[new] = place
        }
        fullestCount = max(fullestCount, new)
        while fullestCount > 0, heads[fullestCount] < 0 { fullestCount -= 1 }
    }
}
