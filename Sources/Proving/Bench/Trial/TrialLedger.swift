import PushModel

/// What was asked of relays under trial, what they promised, what arrived, and what was done to them. Judged
/// at the end (``TrialVerdict``).
struct TrialLedger: Sendable {
    /// One push, by its mark.
    struct Item: Sendable {
        /// The name of the protocol in which it was asked for.
        var load: String
        /// Relays that were dead when it was asked for.
        var life: Int
        /// The relay that promised it; `nil`: none has.
        var promisedBy: Int?
        var arrivals: [TrialArrival] = []

        var isPromised: Bool { promisedBy != nil }
    }

    /// What a relay's end excuses.
    enum Excuse: Sendable {
        case nothing
        /// Whatever was promised by a relay that is dead by now.
        case death
        /// What a fault explains (``TrialFault/explains(_:_:)``).
        case fault
    }

    /// One answered request, for the trace's reader.
    struct Answered: Sendable {
        var port: Int
        var sequence: Int
        var status: Int
        var marks: [String]
    }

    /// What excuses a push that was promised and never arrived, and one that arrived again.
    let (ofLosses, ofDoubles): (Excuse, Excuse)
    private(set) var items: [String: Item] = [:]
    private(set) var faults: [TrialFault] = []
    /// Relays that are dead.
    private(set) var life = 0
    private(set) var requests = 0
    private(set) var acknowledgedRequests = 0
    private(set) var answersWithDeadDevices = 0
    private(set) var unexpectedAnswers = 0
    private(set) var firstUnexpectedStatus: Int?
    /// Arrivals of what nobody asked for.
    private(set) var foreignArrivals = 0
    /// What the ledger had no room for: nothing is known of it, so the trial has failed.
    private(set) var unbooked = 0
    var unanswered = 0
    var refusedForNow = 0
    /// Requests that a caller gave up.
    var neverAcknowledged = 0
    private(set) var answered: [Answered] = []
    var keepsAnswers = false
    /// Of requests that were first asked behind this moment, the first acknowledgement.
    private var watched: (since: UnixTime, first: UnixTime?)?

    /// A hundred thousand kills, the most that a trial may make, leave some ten million pushes, of 200 bytes
    /// each.
    static let mostItems = 1 << 24
    /// Of one push; one that arrives so often has failed long before.
    static let mostArrivals = 1_000

    init(losses: Excuse = .nothing, doubles: Excuse = .fault) { (ofLosses, ofDoubles) = (losses, doubles) }

    // MARK: Promises

    mutating func asked(_ marks: [String], of load: String) {
        requests += 1
        for mark in marks { book(mark, Item(load: load, life: life)) }
    }

    /// One request was answered 200, which promises its pushes.
    ///
    /// - Parameters:
    ///   - relay: which answered.
    ///   - span: from when it was asked for the first time to the answer.
    ///   - areAlive: whether the answer names no device as gone; none ever is.
    mutating func acknowledged(
        _ marks: [String], by relay: Int = 0, in span: ClosedRange<UnixTime>? = nil, areAlive: Bool = true
    ) {
        acknowledgedRequests += 1
        if !areAlive { answersWithDeadDevices += 1 }
        for mark in marks { items[mark]?.promisedBy = relay }
        if let watched, watched.first == nil, let span, span.lowerBound >= watched.since {
            self.watched?.first = span.upperBound
        }
    }

    /// One that is promised by being told.
    ///
    /// - Parameter life: the relay that was up when it was made; another may have taken its place.
    mutating func promised(_ mark: String, of load: String, in life: Int) {
        book(mark, Item(load: load, life: life, promisedBy: 0))
    }

    private mutating func book(_ mark: String, _ item: Item) {
        guard items.count < Self.mostItems else { return unbooked += 1 }
        items[mark] = item
    }

    mutating func unexpected(_ status: Int) {
        unexpectedAnswers += 1
        firstUnexpectedStatus = firstUnexpectedStatus ?? status
    }

    mutating func note(_ answer: Answered) { if keepsAnswers { answered.append(answer) } }

    // MARK: Arrivals

    /// False when nobody asked for it.
    @discardableResult
    mutating func arrived(_ mark: String, _ arrival: TrialArrival) -> Bool {
        guard let count = items[mark]?.arrivals.count else {
            foreignArrivals += 1
            return false
        }
        if count < Self.mostArrivals { items[mark]?.arrivals.append(arrival) } else { unbooked += 1 }
        return true
    }

    /// Promised, not yet arrived, and not excused.
    var missing: Int { items.values.count(where: isMissing) }

    func isMissing(_ item: Item) -> Bool {
        item.isPromised && item.arrivals.isEmpty && !(ofLosses == .death && item.life < life)
    }

    // MARK: Faults

    mutating func happened(_ fault: TrialFault) {
        faults.append(fault)
        if fault.kind == .killed { endLife() }
    }

    /// A relay was killed, and when does not matter.
    mutating func endLife() { life += 1 }
    var kills: [TrialFault] { faults.filter { $0.kind == .killed } }

    /// From now on: how long it takes until a push that is asked for is acknowledged.
    mutating func watch(from moment: UnixTime) { watched = (moment, nil) }
    /// `nil` before there was one.
    var serviceBackAfter: Duration? { watched.flatMap { watch in watch.first.map { $0.since(watch.since) } } }
}

/// A push that the push service accepted.
struct TrialArrival: Sendable {
    /// The relay that sent it, where each has push services of its own.
    var relay = 0
    /// The `apns-id`; empty at FCM, which names messages itself.
    var id: String
    var at: UnixTime
}
