import PushModel

/// What was asked of several relays, what they answered, which of them sent what, and what was done to them.
struct ClusterLedger: Sendable {
    struct Arrival: Sendable {
        /// The relay that sent it: each has push services of its own.
        var relay: Int
        /// The `apns-id`; empty at FCM, which names messages itself.
        var id: String
        var at: UnixTime
    }

    struct Item: Sendable {
        var kind: PushService
        /// The relay that answered for it.
        var acknowledgedBy: Int?
        var arrivals: [Arrival] = []

        var isAcknowledged: Bool { acknowledgedBy != nil }
    }

    /// Something that was done to relays, and by which a push may arrive twice.
    struct Fault: Sendable {
        enum Kind: Sendable {
            /// The process is gone: whatever it sent last may be unsettled. Who sends it again is another
            /// process.
            case killed
            /// The process stands still: as above, and it must not send again itself.
            case suspended
            /// The store cannot be reached: what is sent meanwhile cannot be settled.
            case storeLost
        }

        var kind: Kind
        var relays: Set<Int>
        /// Just before.
        var began: UnixTime
        /// Until here its relays may have sent what they could not settle.
        var sentUntil: UnixTime
        /// The process is gone, goes on, or has its store again.
        var ended: UnixTime

        /// Whether it explains that a push came twice.
        func explains(_ first: Arrival, _ second: Arrival) -> Bool {
            guard relays.contains(first.relay), began.since(first.at) <= ClusterPlan.inFlightSpan,
                first.at <= sentUntil
            else { return false }
            return switch kind {
            case .killed: second.at >= ended
            case .suspended: second.relay != first.relay && second.at >= began
            case .storeLost: second.at >= began
            }
        }
    }

    /// A span in which a relay has no lease, and may send nothing.
    struct Silence: Sendable {
        var relay: Int
        var from: UnixTime
        var to: UnixTime
    }

    private(set) var items: [String: Item] = [:]
    private(set) var faults: [Fault] = []
    private(set) var silences: [Silence] = []
    private(set) var requests = 0
    private(set) var acknowledgedRequests = 0
    private(set) var unanswered = 0
    private(set) var refusedForNow = 0
    private(set) var givenUp = 0
    private(set) var unexpectedStatuses: [Int] = []
    private(set) var answersWithDeadDevices = 0
    private(set) var foreignArrivals = 0
    /// Of requests that were first asked behind this moment, the first acknowledgement.
    private var watched: (since: UnixTime, first: UnixTime?)?

    mutating func asked(_ marks: [(String, PushService)]) {
        requests += 1
        for (mark, kind) in marks { items[mark] = Item(kind: kind) }
    }

    /// - Parameters:
    ///   - asked: when it was asked for the first time.
    ///   - areAlive: whether the answer names no device as gone; none ever is.
    mutating func acknowledged(
        _ marks: [String], by relay: Int, asked: UnixTime, at moment: UnixTime, areAlive: Bool
    ) {
        acknowledgedRequests += 1
        if !areAlive { answersWithDeadDevices += 1 }
        for mark in marks { items[mark]?.acknowledgedBy = relay }
        if let watched, watched.first == nil, asked >= watched.since { self.watched?.first = moment }
    }

    mutating func wasUnanswered() { unanswered += 1 }
    mutating func wasRefusedForNow() { refusedForNow += 1 }
    mutating func wasGivenUp() { givenUp += 1 }
    mutating func unexpected(_ status: Int) { unexpectedStatuses.append(status) }
    mutating func happened(_ fault: Fault) { faults.append(fault) }
    mutating func mustBeSilent(_ silence: Silence) { silences.append(silence) }

    mutating func arrived(_ mark: String, _ arrival: Arrival) {
        guard items[mark] != nil else {
            foreignArrivals += 1
            return
        }
        items[mark]?.arrivals.append(arrival)
    }

    /// From now on: how long it takes until a push that is asked for is acknowledged.
    mutating func watch(from moment: UnixTime) { watched = (moment, nil) }
    /// `nil` before there was one.
    var serviceBackAfter: Duration? { watched.flatMap { watch in watch.first.map { $0.since(watch.since) } } }

    /// Acknowledged and not yet arrived.
    var missing: Int { items.values.count { $0.isAcknowledged && $0.arrivals.isEmpty } }
}

/// What the ledger proves.
struct ClusterResult: Sendable {
    var pushes = 0
    var acknowledged = 0
    /// Acknowledged by a 200, and never accepted by the push service.
    var lost = 0
    /// Arrived although no answer had promised it; allowed.
    var unpromised = 0
    var doubled = 0
    /// Answered for by one relay and sent by others alone: taken over, or repeated at another relay.
    var sentByAnother = 0
    /// Two pushes were made of one; seen at APNs, where the push's id is sent.
    var doubledUnderTwoNames = 0
    /// No fault explains the double.
    var doubledWithoutCause = 0
    /// Arrivals from a relay that had no lease.
    var sentWithoutLease = 0
    /// One of the doubles without cause, for who looks for the reason.
    var example: String?

    init(_ ledger: ClusterLedger) {
        for (mark, item) in ledger.items {
            pushes += 1
            if item.isAcknowledged {
                acknowledged += 1
                if item.arrivals.isEmpty {
                    lost += 1
                } else if !item.arrivals.contains(where: { $0.relay == item.acknowledgedBy }) {
                    sentByAnother += 1
                }
            } else if !item.arrivals.isEmpty {
                unpromised += 1
            }
            if item.arrivals.count > 1 { judgeDouble(mark, item, ledger.faults) }
            for silence in ledger.silences {
                sentWithoutLease += item.arrivals.count {
                    $0.relay == silence.relay && $0.at > silence.from && $0.at < silence.to
                }
            }
        }
    }

    private mutating func judgeDouble(
        _ mark: String, _ item: ClusterLedger.Item, _ faults: [ClusterLedger.Fault]
    ) {
        doubled += 1
        let arrivals = item.arrivals.sorted { $0.at < $1.at }
        if item.kind == .apns, Set(arrivals.map(\.id)).count > 1 {
            doubledUnderTwoNames += 1
            example = example ?? Self.describe(mark, arrivals)
        }
        for (first, second) in zip(arrivals, arrivals.dropFirst())
        where !faults.contains(where: { $0.explains(first, second) }) {
            doubledWithoutCause += 1
            example = example ?? Self.describe(mark, arrivals)
            return
        }
    }

    /// The push's mark is random and the trial's own; the times are those of the trial's faults.
    private static func describe(_ mark: String, _ arrivals: [ClusterLedger.Arrival]) -> String {
        let steps = arrivals.map { "relay \($0.relay) at \($0.at.milliseconds) as \($0.id)" }
        return "\(mark): \(steps.joined(separator: ", "))"
    }

    var hasPassed: Bool {
        lost == 0 && doubledUnderTwoNames == 0 && doubledWithoutCause == 0 && sentWithoutLease == 0
    }
}
