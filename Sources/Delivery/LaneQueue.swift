package import PushModel

/// One lane's pushes in memory: urgent before normal before background, and within a class round robin over
/// origins, so that one noisy origin never stands before another's first push (DESIGN §2.4).
///
/// A value: no clock, no lock. Bounded by `limit`, retries that sleep included.
package struct LaneQueue: Sendable {
    package struct Entry: Sendable {
        package var push: OwedPush
        /// Nothing is known yet of the push's first attempt.
        package var isFirst: Bool
        /// The environment of its address is on record, or needs no record.
        package var environmentKnown: Bool
        /// A first outcome that the peer knows and the store does not yet.
        package var unwritten: OutcomeKind?
        /// It goes on in another lane than the one that its row names.
        package var isMoved = false

        package init(push: OwedPush, isFirst: Bool, environmentKnown: Bool) {
            self.push = push
            self.isFirst = isFirst
            self.environmentKnown = environmentKnown
        }
    }

    package enum Admission: Sendable {
        case held
        /// Held in the place of another, which goes back to the store.
        case displaced(Entry)
        /// No room: this one goes to the store.
        case parked(Entry)
    }

    package let limit: Int
    private var rounds = [Round(), Round(), Round()]
    private var sleeping = Heap()
    package private(set) var count = 0

    package init(limit: Int) { self.limit = limit }

    package var isEmpty: Bool { count == 0 }
    package var readyCount: Int { count - sleeping.count }
    /// When the next sleeping retry is due.
    package var nextDue: UnixTime? { sleeping.first?.push.notBefore }

    /// Whether a push of that class and origin would be held now. The answer may age; `admit` decides.
    package func wouldHold(_ pushClass: PushClass, origin: Digest16) -> Bool {
        count < limit || victim(for: pushClass, origin: origin) != nil || sleeperYields(to: pushClass)
    }

    /// A retry that sleeps waits in the store as well as here. Any late one will do, so the last of the heap.
    private func sleeperYields(to pushClass: PushClass) -> Bool {
        sleeping.last.map { $0.push.pushClass >= pushClass } ?? false
    }

    /// Takes an entry in, in the place of another when full: of a lower class, of the origin that holds most,
    /// or of a retry that sleeps.
    package mutating func admit(_ entry: Entry, now: UnixTime) -> Admission {
        if count < limit {
            insert(entry, now: now)
            return .held
        }
        guard let displaced = displace(for: entry, now: now) else { return .parked(entry) }
        count -= 1
        insert(entry, now: now)
        return .displaced(displaced)
    }

    private mutating func displace(for entry: Entry, now: UnixTime) -> Entry? {
        if let (level, origin) = victim(for: entry.push.pushClass, origin: entry.push.origin),
            let displaced = rounds[level].removeNewest(of: origin)
        {
            return displaced
        }
        guard entry.push.notBefore <= now, sleeperYields(to: entry.push.pushClass) else { return nil }
        return sleeping.removeLast()
    }

    /// Puts back what was taken, at the front of its origin's row; it was counted before, so there is room.
    package mutating func putBack(_ entry: Entry) {
        count += 1
        rounds[Int(entry.push.pushClass.rawValue)].putBack(entry)
    }

    /// The next entry to send.
    package mutating func take() -> Entry? {
        for level in rounds.indices {
            if let entry = rounds[level].take() {
                count -= 1
                return entry
            }
        }
        return nil
    }

    /// Moves retries that are due into the rounds.
    package mutating func wake(now: UnixTime) {
        while let first = sleeping.first, first.push.notBefore <= now {
            guard let entry = sleeping.removeFirst() else { return }
            rounds[Int(entry.push.pushClass.rawValue)].append(entry)
        }
    }

    /// Removes and returns what `condition` picks, sleeping retries included.
    package mutating func remove(where condition: (Entry) -> Bool) -> [Entry] {
        var removed = sleeping.remove(where: condition)
        for level in rounds.indices { removed += rounds[level].remove(where: condition) }
        count -= removed.count
        return removed
    }

    private mutating func insert(_ entry: Entry, now: UnixTime) {
        count += 1
        if entry.push.notBefore > now {
            sleeping.insert(entry)
        } else {
            rounds[Int(entry.push.pushClass.rawValue)].append(entry)
        }
    }

    /// Whose newest push makes room: the fullest origin of the lowest class below ours; in our own class only
    /// an origin that would still hold more than we do.
    private func victim(for pushClass: PushClass, origin: Digest16) -> (level: Int, origin: Digest16)? {
        let own = Int(pushClass.rawValue)
        for level in rounds.indices.reversed() where level > own {
            if let fullest = rounds[level].fullest { return (level, fullest.origin) }
        }
        guard let fullest = rounds[own].fullest, fullest.origin != origin,
            fullest.count > rounds[own].count(of: origin) + 1
        else { return nil }
        return (own, fullest.origin)
    }
}

extension LaneQueue {
    /// The origins of one class, taking turns.
    private struct Round: Sendable {
        private var rows: [Digest16: Row] = [:]
        /// Origins in order of their turn; each stands here once while it has entries.
        private var turns = Fifo<Digest16>()

        func count(of origin: Digest16) -> Int { rows[origin]?.entries.count ?? 0 }

        var fullest: (origin: Digest16, count: Int)? {
            rows.max { $0.value.entries.count < $1.value.entries.count }
                .map { ($0.key, $0.value.entries.count) }
        }

        mutating func append(_ entry: Entry) {
            if rows[entry.push.origin, default: Row()].append(entry) { turns.append(entry.push.origin) }
        }

        mutating func putBack(_ entry: Entry) {
            if rows[entry.push.origin, default: Row()].prepend(entry) { turns.prepend(entry.push.origin) }
        }

        mutating func take() -> Entry? {
            while let origin = turns.popFirst() {
                guard let index = rows.index(forKey: origin) else { continue }
                guard let entry = rows.values[index].entries.popFirst() else {
                    rows.remove(at: index)
                    continue
                }
                if rows.values[index].entries.isEmpty {
                    rows.remove(at: index)
                } else {
                    turns.append(origin)
                }
                return entry
            }
            return nil
        }

        mutating func removeNewest(of origin: Digest16) -> Entry? {
            guard let entry = rows[origin]?.entries.popLast() else { return nil }
            // An origin left empty keeps its turn until `take` meets it, and finds nothing there.
            return entry
        }

        mutating func remove(where condition: (Entry) -> Bool) -> [Entry] {
            var removed: [Entry] = []
            for origin in rows.keys {
                guard var row = rows[origin] else { continue }
                removed += row.entries.remove(where: condition)
                rows[origin] = row
            }
            return removed
        }
    }

    /// One origin's entries, oldest first.
    private struct Row: Sendable {
        var entries = Fifo<Entry>()
        private var hasTurn = false

        /// True when the origin must be given a turn.
        mutating func append(_ entry: Entry) -> Bool {
            entries.append(entry)
            defer { hasTurn = true }
            return !hasTurn
        }

        mutating func prepend(_ entry: Entry) -> Bool {
            entries.prepend(entry)
            defer { hasTurn = true }
            return !hasTurn
        }
    }

    /// Retries that sleep, by due time.
    private struct Heap: Sendable {
        private var items: [Entry] = []
        var count: Int { items.count }
        var first: Entry? { items.first }
        var last: Entry? { items.last }

        /// The last of the array is a leaf: without it the rest is a heap still.
        mutating func removeLast() -> Entry? { items.popLast() }

        mutating func insert(_ entry: Entry) {
            items.append(entry)
            var child = items.count - 1
            while child > 0 {
                let parent = (child - 1) / 2
                guard items[child].push.notBefore < items[parent].push.notBefore else { break }
                items.swapAt(child, parent)
                child = parent
            }
        }

        mutating func removeFirst() -> Entry? {
            guard let last = items.popLast() else { return nil }
            guard let first = items.first else { return last }
            items[0] = last
            var parent = 0
            while true {
                var least = parent
                for child in [2 * parent + 1, 2 * parent + 2]
                where child < items.count && items[child].push.notBefore < items[least].push.notBefore {
                    least = child
                }
                guard least != parent else { return first }
                items.swapAt(parent, least)
                parent = least
            }
        }

        mutating func remove(where condition: (Entry) -> Bool) -> [Entry] {
            let kept = items.filter { !condition($0) }
            let removed = items.filter(condition)
            items = []
            for entry in kept { insert(entry) }
            return removed
        }
    }
}
