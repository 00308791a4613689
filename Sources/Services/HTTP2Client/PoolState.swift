import NIOCore
import PushModel

/// Which connection takes the next request, when another is opened, when one goes: events in, actions out, no
/// socket and no clock of its own.
///
/// A request first *reserves* a stream here; the connection's loop reports in batches what it handed to the
/// session and what ended. A connection has room while streams are free, its socket takes bytes, and its send
/// window, less what is promised but not yet written, holds another request of the usual size.
struct PoolState<Link: AnyObject & Sendable, Waiter: Sendable>: Sendable {
    enum Phase: Sendable { case connecting, ready, draining }

    struct Entry: Sendable {
        let tag: Int
        var link: Link?
        var phase = Phase.connecting
        /// Streams that may be open: the peer's limit under our cap.
        var limit = 0
        /// Streams reserved or in flight.
        var inUse = 0
        /// Of these, reserved and not yet with the session.
        var unsubmitted = 0
        var windowRoomBytes = Int.max
        var usualBodyBytes = 1024
        var writable = true
        /// Requests have expired on it, and none was answered since.
        var isDoubted = false
        var idleSince: ContinuousClock.Instant
        /// When it began to take requests.
        var readySince: ContinuousClock.Instant?

        var hasRoom: Bool {
            guard phase == .ready, inUse < limit, writable else { return false }
            return windowRoomBytes / usualBodyBytes > unsubmitted
        }

        /// Which of two takes the next request.
        func goesBefore(_ other: Entry) -> Bool {
            isDoubted == other.isDoubted ? inUse < other.inUse : other.isDoubted
        }
    }

    /// What a connection's loop saw since its last report.
    struct Report: Sendable {
        var limit: Int
        var submitted = 0
        var closed = 0
        var windowRoomBytes: Int
        var usualBodyBytes: Int
        var writable: Bool
        var isDoubted = false
    }

    struct Grant: Sendable { let waiter: Waiter, tag: Int, link: Link }

    struct Due: Sendable {
        var open: [Int] = []
        var retire: [Link] = []
        var expire: [Waiter] = []
        /// Look again at this time, if nothing else happens.
        var lookAgain: ContinuousClock.Instant?
    }

    private struct Waiting: Sendable { let id: UInt64, waiter: Waiter, until: ContinuousClock.Instant? }

    private let options: HTTP2Options
    private(set) var entries: [Entry] = []
    private var waiting = CircularBuffer<Waiting>()
    private var nextTag = 1
    private var nextWaiter: UInt64 = 1
    private var fullSince: ContinuousClock.Instant?
    /// Connections in a row that ended without a good answer.
    private(set) var failures = 0
    private var openNotBefore: ContinuousClock.Instant?
    /// The peer closed the last connection because it was idle: the next is opened when there is a request.
    private(set) var rests = false
    private(set) var running = false
    private(set) var stopping = false

    init(options: HTTP2Options) { self.options = options }

    var waitingCount: Int { waiting.count }
    var inFlight: Int { entries.reduce(0) { $0 + $1.inUse } }
    var readyCount: Int { entries.reduce(0) { $0 + ($1.phase == .ready ? 1 : 0) } }

    mutating func start() { running = true }

    /// Reserves a stream on the connection with the fewest in use, a doubted one last; `nil` when all are
    /// full. Among equals the first wins, so that the others fall idle and go.
    mutating func take() -> (tag: Int, link: Link)? {
        var best: Int?
        for index in entries.indices where entries[index].hasRoom {
            if let chosen = best, !entries[index].goesBefore(entries[chosen]) { continue }
            best = index
        }
        guard let best, let link = entries[best].link else { return nil }
        entries[best].inUse += 1
        entries[best].unsubmitted += 1
        return (entries[best].tag, link)
    }

    /// Queues a caller. First come, first served; a resend goes before all, because its push is older.
    mutating func wait(
        _ waiter: Waiter, ahead: Bool, until: ContinuousClock.Instant?, now: ContinuousClock.Instant
    ) -> UInt64 {
        let id = nextWaiter
        nextWaiter += 1
        let entry = Waiting(id: id, waiter: waiter, until: until)
        if ahead { waiting.prepend(entry) } else { waiting.append(entry) }
        if fullSince == nil { fullSince = now }
        return id
    }

    /// Takes a caller out of the queue; `nil` when it has been served.
    mutating func cancel(_ id: UInt64) -> Waiter? {
        guard let index = waiting.firstIndex(where: { $0.id == id }) else { return nil }
        let waiter = waiting.remove(at: index).waiter
        if waiting.isEmpty { fullSince = nil }
        return waiter
    }

    /// An opening that `plan` asked for has begun.
    mutating func dialing(_ tag: Int, _ link: Link) {
        if let index = index(of: tag) { entries[index].link = link }
    }

    mutating func ready(_ tag: Int, _ link: Link, _ report: Report, now: ContinuousClock.Instant) -> [Grant] {
        guard let index = index(of: tag), entries[index].phase == .connecting else { return [] }
        entries[index].link = link
        entries[index].phase = .ready
        entries[index].idleSince = now
        entries[index].readySince = now
        return take(report, at: index, now: now)
    }

    mutating func report(_ tag: Int, _ report: Report, now: ContinuousClock.Instant) -> [Grant] {
        guard let index = index(of: tag) else { return [] }
        return take(report, at: index, now: now)
    }

    /// A reserved stream that was not used.
    mutating func giveBack(_ tag: Int, now: ContinuousClock.Instant) -> [Grant] {
        guard let index = index(of: tag) else { return [] }
        entries[index].inUse -= 1
        entries[index].unsubmitted -= 1
        if entries[index].inUse == 0 { entries[index].idleSince = now }
        return grants()
    }

    /// No more requests on this connection: GOAWAY, or someone asked for another one.
    mutating func drain(_ tag: Int) {
        guard let index = index(of: tag) else { return }
        entries[index].phase = .draining
    }

    /// A good answer came: earlier failures no longer count.
    mutating func proved() {
        failures = 0
        openNotBefore = nil
    }

    /// A connection ended or never stood. `proved`: it gave a good answer in its life; only a connection that
    /// gave none delays the next, so that a refused credential or a full peer does not cause a storm of
    /// connections.
    ///
    /// - Parameter idle: it ended without a fault and with no request under way. If it had served, or stood
    ///   for a while, nothing has failed, and the next one is opened on demand and at once.
    mutating func ended(
        _ tag: Int, proved: Bool, idle: Bool = false, now: ContinuousClock.Instant, random: UInt64
    ) {
        guard let index = index(of: tag) else { return }
        let stood = entries.remove(at: index).readySince.map { now - $0 >= options.restAfter } ?? false
        if idle, proved || stood {
            (failures, openNotBefore) = (0, nil)
            rests = true
            return
        }
        guard !proved else { return }
        let ceiling = options.backoffBase.doubled(failures, atMost: options.backoffCap)
        failures += 1
        let wait = now + ceiling.part(random)
        openNotBefore = max(openNotBefore ?? wait, wait)
    }

    /// What is due now.
    mutating func plan(now: ContinuousClock.Instant) -> Due {
        var plan = Due()
        guard running, !stopping else { return plan }
        expire(now: now, into: &plan)
        shrink(now: now, into: &plan)
        while let due = nextOpening(now: now) {
            let moment = max(due, openNotBefore ?? due)
            guard moment <= now else {
                plan.lookAgain = min(plan.lookAgain ?? moment, moment)
                break
            }
            let tag = nextTag
            nextTag += 1
            rests = false
            entries.append(Entry(tag: tag, idleSince: now))
            plan.open.append(tag)
            if fullSince != nil { fullSince = now }
        }
        return plan
    }

    /// For how long time alone changes nothing that `plan` would see: nobody waits, and there is one trusted
    /// connection, or none that may be opened yet. `nil`: something may become due.
    func rest(at now: ContinuousClock.Instant) -> Duration? {
        guard waiting.isEmpty, fullSince == nil, entries.count <= 1, !entries.contains(where: \.isDoubted)
        else { return nil }
        if !entries.isEmpty || rests { return options.restLook }
        guard let openNotBefore, openNotBefore > now else { return nil }
        return min(options.restLook, openNotBefore - now)
    }

    /// Ends the pool: waiters are told, and connections drain.
    mutating func stop() -> (waiters: [Waiter], links: [Link]) {
        stopping = true
        let waiters = waiting.map(\.waiter)
        waiting.removeAll()
        for index in entries.indices { entries[index].phase = .draining }
        return (waiters, entries.compactMap(\.link))
    }

    /// When another connection should be opened; `nil`: there are enough, or enough on their way. As many may
    /// be on their way as there are connections, so that a pool doubles.
    private func nextOpening(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        var (connecting, readyCount, doubted) = (0, 0, 0)
        for entry in entries {
            switch entry.phase {
            case .connecting: connecting += 1
            case .ready:
                readyCount += 1
                doubted += entry.isDoubted ? 1 : 0
            case .draining: break
            }
        }
        guard entries.count < 4 * options.maximumConnections else { return nil }
        if readyCount + connecting == 0 { return rests && waiting.isEmpty ? nil : now }
        // If the only connection is doubted, a second is opened meanwhile, but no third if the second is
        // doubted too.
        if connecting == 0, readyCount == 1, doubted == 1 { return now }
        guard let fullSince, readyCount + connecting < options.maximumConnections,
            connecting < max(1, readyCount), readyCount > 0
        else { return nil }
        return fullSince + options.growAfter
    }

    private mutating func expire(now: ContinuousClock.Instant, into plan: inout Due) {
        guard waiting.contains(where: { $0.until != nil }) else { return }
        for entry in waiting {
            guard let until = entry.until else { continue }
            if until <= now {
                plan.expire.append(entry.waiter)
            } else {
                plan.lookAgain = min(plan.lookAgain ?? until, until)
            }
        }
        waiting.removeAll { $0.until.map { $0 <= now } ?? false }
        if waiting.isEmpty { fullSince = nil }
    }

    private mutating func shrink(now: ContinuousClock.Instant, into plan: inout Due) {
        var readyCount = readyCount
        var trusted = entries.count { $0.phase == .ready && !$0.isDoubted }
        for index in entries.indices.reversed() where readyCount > 1 {
            let entry = entries[index]
            // A doubted connection goes as soon as there is a better one, and the last trusted one does not
            // go.
            let goes =
                entry.isDoubted ? trusted > 0 : now - entry.idleSince >= options.idleShrink && trusted > 1
            guard entry.phase == .ready, entry.inUse == 0, goes, let link = entry.link else { continue }
            entries[index].phase = .draining
            plan.retire.append(link)
            readyCount -= 1
            if !entry.isDoubted { trusted -= 1 }
        }
    }

    private func index(of tag: Int) -> Int? { entries.firstIndex { $0.tag == tag } }

    private mutating func take(_ report: Report, at index: Int, now: ContinuousClock.Instant) -> [Grant] {
        entries[index].limit = report.limit
        entries[index].inUse -= report.closed
        entries[index].unsubmitted -= report.submitted
        entries[index].windowRoomBytes = report.windowRoomBytes
        entries[index].usualBodyBytes = max(1, report.usualBodyBytes)
        entries[index].writable = report.writable
        entries[index].isDoubted = report.isDoubted
        if report.closed > 0, entries[index].inUse == 0 { entries[index].idleSince = now }
        return grants()
    }

    private mutating func grants() -> [Grant] {
        guard !waiting.isEmpty else { return [] }
        var grants: [Grant] = []
        while !waiting.isEmpty, let (tag, link) = take() {
            grants.append(Grant(waiter: waiting.removeFirst().waiter, tag: tag, link: link))
        }
        if waiting.isEmpty { fullSince = nil }
        return grants
    }
}
