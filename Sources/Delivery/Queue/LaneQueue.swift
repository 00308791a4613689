package import PushModel

/// One lane's pushes in memory: urgent before normal before background, and within a class in turns
/// (``LaneRound``), so that no flood goes before another's first push (docs/architecture.md).
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
        /// Where it stands among what its lane has under way (``RowsUnderWay``).
        var place: Int32 = -1
        /// The lease's term in which the store was asked for it: in a later one the row may be another's.
        package var term: Int
        /// It left while the lane was halted, to find out whether it still is.
        var isProbe = false
        /// As such a probe it went before its turn, because its origin had lately been accepted.
        var isKnown = false
        /// Answers in a row before which no service had looked at it.
        var unreached = 0
        /// It was put off, or comes from the store.
        var hasWaited = false
        /// The answer that another lane got before the push went on in this one.
        var firstWord: FirstWord?
        /// A number that stands for its address, in this process alone.
        let address: Int
        /// A number that stands for the authority that it names; `nil` when it names none.
        let destination: Int?
        /// How far its times were moved with the wall clock (``LaneMemory/heed(_:_:)``).
        var clockShift = Duration.zero

        package init(push: OwedPush, isFirst: Bool, environmentKnown: Bool, term: Int = 0) {
            self.push = push
            self.isFirst = isFirst
            self.environmentKnown = environmentKnown
            self.term = term
            let message = push.message
            address = message.addressNumber
            destination = message.value.authority.map(Self.number)
        }

        /// The process's own seeded hash.
        private static func number(_ authority: String) -> Int {
            var hasher = Hasher()
            hasher.combine(authority)
            return hasher.finalize()
        }
    }

    /// The answer of the first lane of a pair, by which a push may have to end after all.
    ///
    /// A class, so that an entry that was never elsewhere pays for a reference.
    package final class FirstWord: Sendable {
        let lane: LaneName
        let answer: Answer

        init(_ answer: Answer, in lane: LaneName) {
            self.lane = lane
            self.answer = answer
        }
    }

    package enum Admission: Sendable {
        case held
        /// Held instead of another push, which goes back to the store.
        case displaced(Entry)
        /// No room: this one goes to the store.
        case parked(Entry)
    }

    package let limit: Int
    private var rounds = [LaneRound(), LaneRound(), LaneRound()]
    private var sleeping = SleepHeap()
    /// Probes that came back, the longest ago first: the turn of all others comes before theirs.
    private var bench = Fifo<Entry>()
    package private(set) var count = 0
    /// Durable ones of each class, wherever they stand.
    private var durable = [0, 0, 0]
    /// The class after the one whose turn it was, while turns are taken one by one.
    private var turn = 0
    /// Turns since one of the probes that came back had its own.
    private var turnsOfOthers = 0
    /// The number of other pushes that go before such a probe. Without a limit, it would wait a minute for
    /// each push of an origin that invents addresses.
    private static let mostTurnsOfOthers = 16
    /// No custody of a held push ends before this time.
    private var custodyHolds = UnixTime.distantFuture

    package init(limit: Int) { self.limit = limit }

    package var isEmpty: Bool { count == 0 }
    package var readyCount: Int { count - sleeping.count }
    var hasUrgent: Bool { !rounds[0].isEmpty }
    /// How many durable pushes of this class and of more urgent ones are held. Volatile pushes do not count,
    /// so that a flood of them does not keep the store's pushes out of memory: as one origin's pushes they
    /// make room, and have their turn among others.
    package func durableCount(upTo lowest: PushClass) -> Int {
        durable[...Int(lowest.rawValue)].reduce(0, +)
    }
    /// Whether `take` would return something after `wake`.
    package func hasDue(_ now: UnixTime) -> Bool { readyCount > 0 || nextDue.map { $0 <= now } ?? false }
    /// When the next sleeping retry is due.
    package var nextDue: UnixTime? { sleeping.first?.push.notBefore }

    /// Whether a push of that class, holder and address would be held now. The answer may age; `admit`
    /// decides.
    ///
    /// - Parameter address: asked for only when the queue is full.
    package func wouldHold(_ pushClass: PushClass, origin: Digest16, address: () -> Int) -> Bool {
        let own = Int(pushClass.rawValue)
        return count < limit || rounds[(own + 1)...].contains { !$0.isEmpty }
            || rounds[own].yields(to: origin, address) || sleeperYields(to: pushClass)
            || bench.first(where: { $0.push.pushClass > pushClass }) != nil
    }

    /// A sleeping retry can wait in the store as well as here. Any late one will do, so the last of the heap
    /// is taken.
    private func sleeperYields(to pushClass: PushClass) -> Bool {
        sleeping.last.map { $0.push.pushClass >= pushClass } ?? false
    }

    /// Takes an entry in; when full, instead of another: one of a lower class, one of the holder with most
    /// entries in its own class, or a sleeping retry.
    package mutating func admit(_ entry: consuming Entry, now: UnixTime) -> Admission {
        if count < limit {
            insert(entry, now: now)
            return .held
        }
        guard let displaced = displace(for: entry, now: now) else { return .parked(entry) }
        uncount(displaced)
        insert(entry, now: now)
        return .displaced(displaced)
    }

    private mutating func displace(for entry: Entry, now: UnixTime) -> Entry? {
        let own = Int(entry.push.pushClass.rawValue)
        for level in rounds.indices.reversed() where level > own {
            if let gone = rounds[level].removeNewestOfFullest() { return gone }
        }
        if let gone = rounds[own].makeRoom(for: entry) { return gone }
        if entry.push.notBefore <= now, sleeperYields(to: entry.push.pushClass) {
            return sleeping.removeLast()
        }
        return bench.removeFirst { $0.push.pushClass > entry.push.pushClass }
    }

    /// Puts back what was taken, at the front of its row; it was counted before, so there is room.
    package mutating func putBack(_ entry: Entry) {
        note(entry)
        rounds[Int(entry.push.pushClass.rawValue)].putBack(entry)
    }

    /// Puts back what was taken, to sleep until it is due: it was counted before, so there is room.
    package mutating func putToSleep(_ entry: Entry) {
        note(entry)
        sleeping.insert(entry)
    }

    /// Puts a probe back behind all others, until they have had their turn.
    package mutating func setAside(_ entry: Entry) {
        note(entry)
        bench.append(entry)
    }

    /// Puts the probes that came back in front, in the order in which they left.
    package mutating func endTurns() {
        while let entry = bench.popLast() { rounds[Int(entry.push.pushClass.rawValue)].putBack(entry) }
    }

    /// The next entry to send.
    package mutating func take() -> Entry? {
        for level in rounds.indices {
            if let entry = rounds[level].take() {
                uncount(entry)
                return entry
            }
        }
        return takeFromBench()
    }

    /// The next push when they are tried one by one: of each class in turn, so that the answer to one class
    /// does not hide the answers to the others.
    package mutating func takeTurn() -> Entry? {
        if turnsOfOthers >= Self.mostTurnsOfOthers, let entry = takeFromBench() { return entry }
        for step in rounds.indices {
            let level = (turn + step) % rounds.count
            if let entry = rounds[level].take() {
                turn = (level + 1) % rounds.count
                turnsOfOthers += 1
                uncount(entry)
                return entry
            }
        }
        return takeFromBench()
    }

    /// A push to somebody who was lately reached, whatever its class: to an address that was, else of an
    /// origin that was. `nil` when none stands in turn here.
    ///
    package mutating func takeKnown(_ known: some Collection<LateAcceptances.Known>) -> Entry? {
        for mustBeReached in [true, false] {
            for one in known {
                for level in rounds.indices {
                    let entry = rounds[level].take(of: one.origin, atMost: Self.mostLookedAt) { entry in
                        !mustBeReached || one.addresses.contains(entry.address)
                    }
                    guard let entry else { continue }
                    uncount(entry)
                    return entry
                }
            }
        }
        return nil
    }

    /// Entries of one origin and class whose addresses are compared, once a minute.
    private static let mostLookedAt = 64

    private mutating func takeFromBench() -> Entry? {
        guard let entry = bench.popFirst() else { return nil }
        turnsOfOthers = 0
        uncount(entry)
        return entry
    }

    private mutating func note(_ entry: Entry) {
        count += 1
        if entry.push.isDurable { durable[Int(entry.push.pushClass.rawValue)] += 1 }
        custodyHolds = min(custodyHolds, entry.push.custodyEnds)
    }

    private mutating func uncount(_ entry: Entry) {
        count -= 1
        if entry.push.isDurable { durable[Int(entry.push.pushClass.rawValue)] -= 1 }
    }

    /// Some origins that have a durable push here, at most so many.
    package func origins(atMost most: Int) -> [Digest16] {
        var found: [Digest16] = []
        for round in rounds {
            for origin in round.durableOrigins(atMost: most) where !found.contains(origin) {
                found.append(origin)
                if found.count == most { return found }
            }
        }
        return found
    }

    /// Moves retries that are due into the rounds.
    ///
    /// - Parameter within: nothing sleeps longer by its own rule. What does was put off by a clock that has
    ///   been set back since, and is due.
    package mutating func wake(now: UnixTime, within: Duration = .seconds(86_400)) {
        while let first = sleeping.first,
            first.push.notBefore <= now || first.push.notBefore.since(now) > within
        {
            guard let entry = sleeping.removeFirst() else { return }
            rounds[Int(entry.push.pushClass.rawValue)].append(entry)
        }
    }

    /// Removes and returns what `condition` picks, sleeping retries included.
    package mutating func remove(where condition: (Entry) -> Bool) -> [Entry] {
        var removed = sleeping.remove(where: condition)
        for level in rounds.indices { removed += rounds[level].remove(where: condition) }
        removed += bench.remove(where: condition)
        for entry in removed { uncount(entry) }
        return removed
    }

    /// Removes and returns pushes whose custody is over. The queue is walked only when the custody of a held
    /// push may have ended, not at each of the ten ticks of a second.
    package mutating func removeEnded(now: UnixTime) -> [Entry] {
        guard custodyHolds <= now else { return [] }
        var next = UnixTime.distantFuture
        let ended = remove { entry in
            if entry.push.custodyEnds <= now { return true }
            next = min(next, entry.push.custodyEnds)
            return false
        }
        custodyHolds = next
        return ended
    }

    /// The next end of custody must be computed again.
    package mutating func forgetCustody() { custodyHolds = .distantPast }

    private mutating func insert(_ entry: consuming Entry, now: UnixTime) {
        note(entry)
        if entry.push.notBefore > now {
            sleeping.insert(entry)
        } else {
            rounds[Int(entry.push.pushClass.rawValue)].append(entry)
        }
    }
}

extension LaneQueue.Entry {
    /// As it goes on after an answer.
    func again(after answer: Answer) -> LaneQueue.Entry {
        var again = self
        again.isFirst = false
        again.isKnown = false
        again.hasWaited = true
        again.unreached = answer.fate == .unprocessed ? unreached + 1 : 0
        return again
    }
}

extension ProviderMessage {
    /// A number that is the same for the same address and, except by chance, different for others; valid in
    /// this process only.
    var addressNumber: Int {
        address.reveal { bytes in
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            return hasher.finalize()
        }
    }
}
