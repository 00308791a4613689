import PushModel

/// A lane's pushes in memory, and the times that they live by. A value.
///
/// Pushes that must leave it are listed among the actions: durable ones go back to the store; volatile ones,
/// which have no row, go to a shelf beside the queue.
struct LaneMemory: Sendable {
    private var queue: LaneQueue
    /// Volatile pushes for which the queue has no room, or whose next attempt is far off. Durable ones wait
    /// in the store instead.
    private var shelf: LaneQueue
    private var wallClock = WallClock()
    /// What custody ends by instead of a wall clock that is in doubt; `nil`: it is believed.
    private var doubted: DoubtedClock.Reading?
    /// The lane has ended: what comes now is too late.
    private var isOver = false
    private let longestWait: Duration
    private let retryClaim: Duration
    private let keepRetryWithin: Duration

    /// - Parameter longestWait: no back-off and no push service puts a push off for longer.
    init(limits: DeliveryLimits, longestWait: Duration) {
        self.longestWait = longestWait
        retryClaim = limits.backoffBase
        keepRetryWithin = limits.keepRetryWithin
        queue = LaneQueue(limit: limits.lanePushes)
        shelf = LaneQueue(limit: limits.volatilePushes)
    }

    var count: Int { queue.count + shelf.count }
    var isEmpty: Bool { queue.isEmpty && shelf.isEmpty }
    var hasShelved: Bool { !shelf.isEmpty }
    var readyCount: Int { queue.readyCount }
    /// Something urgent stands in turn.
    var hasUrgent: Bool { queue.hasUrgent }
    var free: Int { max(0, queue.limit - queue.count) }
    var isFull: Bool { queue.count >= queue.limit }
    var room: ParkedRows.Room {
        ParkedRows.Room(
            limit: queue.limit, count: queue.count, urgent: queue.durableCount(upTo: .urgent),
            normal: queue.durableCount(upTo: .normal), all: queue.durableCount(upTo: .background))
    }

    func wouldHold(_ pushClass: PushClass, origin: Digest16, address: () -> Int) -> Bool {
        queue.wouldHold(pushClass, origin: origin, address: address)
    }

    /// Some origins that have a durable push in the queue.
    func origins(atMost most: Int) -> [Digest16] { queue.origins(atMost: most) }

    /// Whether `take` could return something now.
    func hasDue(_ now: UnixTime) -> Bool { queue.hasDue(now) || (canUnshelve && shelf.hasDue(now)) }

    // MARK: in

    mutating func admit(_ entries: [LaneQueue.Entry], now: UnixTime, _ actions: inout LaneState.Actions) {
        // In their places: an entry is large.
        for index in entries.indices {
            switch queue.admit(entries[index], now: now) {
            case .held: break
            case .displaced(let displaced): park(displaced, &actions)
            case .parked(let entry): park(entry, &actions)
            }
        }
    }

    /// Back to its place at the front.
    mutating func putBack(_ entry: LaneQueue.Entry) { queue.putBack(entry) }

    /// Behind all others, until they have had their turn.
    mutating func putLast(_ entry: LaneQueue.Entry) { queue.setAside(entry) }

    /// Those that went behind all others stand in their places again.
    mutating func endTurns() { queue.endTurns() }

    /// A volatile push is tried again at that time, in the queue if there is room and nothing forbids it.
    mutating func retry(
        _ entry: LaneQueue.Entry, isLate: Bool, now: UnixTime, _ actions: inout LaneState.Actions
    ) {
        if isLate || isFull { return shelve(entry, &actions) }
        _ = queue.admit(entry, now: now)
    }

    /// The push that was taken waits for its destination: for a short time in memory, as long as such pushes
    /// do not fill it, otherwise in the store.
    mutating func holdBack(
        _ entry: LaneQueue.Entry, for wait: Duration, now: UnixTime, _ actions: inout LaneState.Actions
    ) {
        var entry = entry
        entry.hasWaited = true
        // Wall time has whole milliseconds. A push that is put off for less than one would be due at once,
        // and its lane would take it and put it off again and again.
        entry.push.notBefore = now + max(wait, .milliseconds(1))
        if wait <= keepRetryWithin, queue.count * 4 <= queue.limit { return queue.putToSleep(entry) }
        if entry.push.isVolatile { return shelve(entry, &actions) }
        actions.putOff(entry, until: now + max(wait, retryClaim), entry.push.attempts)
    }

    // MARK: out

    /// What is due may be taken.
    mutating func wake(now: UnixTime) {
        queue.wake(now: now, within: longestWait)
        unshelve(now: now)
    }

    /// The next to send.
    ///
    /// - Parameter isTurn: pushes are tried one by one, of each class in turn.
    mutating func take(isTurn: Bool) -> LaneQueue.Entry? { isTurn ? queue.takeTurn() : queue.take() }

    /// The next probe: to somebody who was lately reached, if anything of theirs waits, else in turn.
    mutating func takeProbe(_ known: ArraySlice<LateAcceptances.Known>) -> LaneQueue.Entry? {
        guard var entry = queue.takeKnown(known) else { return queue.takeTurn() }
        entry.isKnown = true
        return entry
    }

    /// Gives a push back to the store, or lays it aside, if it is volatile.
    mutating func park(_ entry: LaneQueue.Entry, _ actions: inout LaneState.Actions) {
        if entry.push.isVolatile { return shelve(entry, &actions) }
        actions.giveBack(entry)
    }

    /// Takes out the pushes that came from another lane, with whose answer they can end.
    mutating func takeMoved() -> [LaneQueue.Entry] {
        queue.remove { $0.firstWord != nil } + shelf.remove { $0.firstWord != nil }
    }

    /// Gives back all durable pushes, because another process may own their rows by now, or because nothing
    /// more is sent. The store changes nothing about rows that are no longer ours. Volatile pushes have no
    /// row, and stay.
    ///
    /// - Parameter term: pushes that came in this term stay, because they are ours.
    mutating func giveBack(keeping term: Int? = nil) -> LaneState.Actions {
        var actions = LaneState.Actions()
        for entry in queue.remove(where: { $0.push.isDurable && $0.term != term }) {
            park(entry, &actions)
        }
        return actions
    }

    /// Takes out a push that has ended, wherever it stands; `nil`: it is not here.
    mutating func takeOut(_ id: PushID) -> LaneQueue.Entry? {
        (queue.remove { $0.push.id == id } + shelf.remove { $0.push.id == id }).first
    }

    /// Lets go of what has ended elsewhere.
    mutating func revoke(_ pushes: Set<PushID>) -> [LaneQueue.Entry] {
        queue.remove { pushes.contains($0.push.id) }
    }

    /// Ends pushes whose custody is over.
    mutating func endCustody(now: UnixTime, _ actions: inout LaneState.Actions) {
        for entry in removeEnded(now) { actions.end(entry) }
        for entry in shelf.removeEnded(now: now) { actions.end(entry) }
    }

    private mutating func removeEnded(_ now: UnixTime) -> [LaneQueue.Entry] {
        guard let doubted else { return queue.removeEnded(now: now) }
        let ended = queue.remove { $0.push.custodyEnds <= Self.custodyTime(of: $0.push, now, doubted) }
        queue.forgetCustody()
        return ended
    }

    /// Volatile pushes are tried once more at once, however far off their next attempt was, because there
    /// will be no other.
    mutating func hurry(now: UnixTime) {
        for var entry in queue.remove(where: { _ in true }) + shelf.remove(where: { _ in true }) {
            entry.push.notBefore = min(entry.push.notBefore, now)
            // Together they are no more than the shelf holds.
            _ = shelf.admit(entry, now: .distantPast)
        }
        unshelve(now: now)
    }

    /// Nobody sends any more.
    mutating func finish(_ actions: inout LaneState.Actions) {
        isOver = true
        let left = queue.remove { _ in true }.count + shelf.remove { _ in true }.count
        if left > 0 { actions.drop(left) }
    }

    // MARK: times

    /// What custody ends by from now on.
    mutating func believe(_ clock: DoubtedClock.Reading) { doubted = clock.isDoubted ? clock : nil }

    /// Moves the times of volatile pushes along with a wall clock that was set: they are owed for a span, and
    /// no other process reads them. Pushes in the store keep their times, which outlive this process.
    mutating func heed(_ now: UnixTime, _ instant: ContinuousClock.Instant) {
        guard wallClock.wasSet(now, instant) else { return }
        for entry in queue.remove(where: { $0.push.isVolatile }) {
            _ = queue.admit(wallClock.moved(entry), now: now)
        }
        // Nothing on the shelf is due yet, as below.
        for entry in shelf.remove(where: { _ in true }) {
            _ = shelf.admit(wallClock.moved(entry), now: .distantPast)
        }
    }

    /// Gives times of the present clock to a push that left before the clock was set.
    func move(_ entry: inout LaneQueue.Entry) { wallClock.move(&entry) }

    /// Pushes that come now.
    func stamped(_ entries: [LaneQueue.Entry]) -> [LaneQueue.Entry] {
        // Rare: the clocks of most machines are never set.
        wallClock.shift == .zero ? entries : entries.map(wallClock.stamped)
    }

    /// The time that says whether custody of a push has ended. Volatile pushes move with the clock
    /// (``WallClock``), because none is older than this process.
    func custodyTime(of push: OwedPush, _ now: UnixTime) -> UnixTime {
        Self.custodyTime(of: push, now, doubted)
    }

    private static func custodyTime(
        of push: OwedPush, _ now: UnixTime, _ doubted: DoubtedClock.Reading?
    ) -> UnixTime {
        guard let doubted, push.isDurable else { return now }
        return min(now, doubted.end(of: push.id.acceptedAt, lasting: push.custodyEnds))
    }

    // MARK: the shelf

    /// Lays a volatile push aside. It stays in memory, or is dropped and counted.
    private mutating func shelve(_ entry: LaneQueue.Entry, _ actions: inout LaneState.Actions) {
        guard !isOver else { return actions.drop(1) }
        // Nothing on the shelf is due yet; `unshelve` looks at the clock.
        switch shelf.admit(entry, now: .distantPast) {
        case .held: break
        case .displaced, .parked: actions.drop(1)
        }
    }

    /// Only into a queue that is half empty, so that shelved pushes do not displace durable ones.
    private var canUnshelve: Bool { queue.count * 2 <= queue.limit }

    /// Takes from the shelf what is due, while the queue has room.
    private mutating func unshelve(now: UnixTime) {
        guard !shelf.isEmpty else { return }
        shelf.wake(now: now, within: longestWait)
        while canUnshelve, let entry = shelf.take() { _ = queue.admit(entry, now: now) }
    }
}
