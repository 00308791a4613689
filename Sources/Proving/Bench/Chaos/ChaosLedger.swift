import PushModel

/// What was asked, what was answered, what arrived, and when the relay was killed. Judged at the end.
struct ChaosLedger: Sendable {
    struct Item: Sendable {
        var kind: PushService
        /// The name of the protocol in which it was asked for.
        var load: String
        var isAcknowledged = false
        /// In the order of arrival; `id` is the `apns-id`, empty at FCM.
        var deliveries: [(id: String, at: UnixTime)] = []
    }

    /// The end of one relay.
    struct Kill: Sendable {
        /// Just before the signal was sent.
        var began: UnixTime
        /// The process is gone, and the push service has read all that it had sent.
        var ended: UnixTime
    }

    /// One answered request, for the trace's reader.
    struct Answered: Sendable {
        var port: Int
        var sequence: Int
        var status: Int
        var marks: [String]
    }

    private(set) var items: [String: Item] = [:]
    private(set) var kills: [Kill] = []
    private(set) var requests = 0
    private(set) var acknowledgedRequests = 0
    private(set) var unanswered = 0
    private(set) var refusedForNow = 0
    private(set) var neverAcknowledged = 0
    private(set) var unexpectedStatuses: [Int] = []
    private(set) var answersWithDeadDevices = 0
    private(set) var foreignDeliveries = 0
    private(set) var answered: [Answered] = []
    var keepsAnswers = false

    mutating func asked(_ marks: [(String, PushService)], of load: String) {
        requests += 1
        for (mark, kind) in marks { items[mark] = Item(kind: kind, load: load) }
    }

    mutating func acknowledged(_ marks: [String], hasDeadDevices: Bool) {
        acknowledgedRequests += 1
        if hasDeadDevices { answersWithDeadDevices += 1 }
        for mark in marks { items[mark]?.isAcknowledged = true }
    }

    mutating func note(_ answer: Answered) { if keepsAnswers { answered.append(answer) } }
    mutating func wasUnanswered() { unanswered += 1 }
    mutating func wasRefusedForNow() { refusedForNow += 1 }
    mutating func wasNeverAcknowledged() { neverAcknowledged += 1 }
    mutating func unexpected(_ status: Int) { unexpectedStatuses.append(status) }
    mutating func killed(_ kill: Kill) { kills.append(kill) }

    mutating func delivered(_ mark: String, id: String, at moment: UnixTime) {
        guard items[mark] != nil else {
            foreignDeliveries += 1
            return
        }
        items[mark]?.deliveries.append((id, moment))
    }

    /// Acknowledged and not yet arrived.
    var missing: Int { items.values.count { $0.isAcknowledged && $0.deliveries.isEmpty } }
}

/// What the ledger proves.
struct ChaosResult: Sendable {
    /// Of the pushes of one protocol.
    struct Share: Sendable {
        var acknowledged = 0
        /// Acknowledged by a 200, and never accepted by the push service.
        var lost = 0
    }

    var pushes = 0
    /// By the protocol's name: each that was asked in.
    var shares: [String: Share] = [:]
    var acknowledged: Int { shares.values.reduce(0) { $0 + $1.acknowledged } }
    var lost: Int { shares.values.reduce(0) { $0 + $1.lost } }
    /// Arrived although no answer had promised it; allowed.
    var unpromised = 0
    /// Pushes that arrived more than once.
    var doubled = 0
    /// Doubles with a second `apns-id`: two pushes were made of one.
    var doubledUnderTwoNames = 0
    /// Doubles with no kill between the two arrivals, or one sent long before it.
    var doubledWithoutCause = 0
    /// One of the doubles without cause, for who looks for the reason.
    var example: String?
    /// The longest time between an arrival and the kill that explains its double.
    var oldestDouble = Duration.zero

    init(_ ledger: ChaosLedger) {
        let kills = ledger.kills.sorted { $0.began < $1.began }
        for item in ledger.items.values {
            pushes += 1
            shares[item.load] = shares[item.load] ?? Share()
            if item.isAcknowledged {
                shares[item.load, default: Share()].acknowledged += 1
                if item.deliveries.isEmpty { shares[item.load, default: Share()].lost += 1 }
            } else if !item.deliveries.isEmpty {
                unpromised += 1
            }
            if item.deliveries.count > 1 { judgeDouble(item, kills) }
        }
    }

    private mutating func judgeDouble(_ item: ChaosLedger.Item, _ kills: [ChaosLedger.Kill]) {
        doubled += 1
        if item.kind == .apns, Set(item.deliveries.map(\.id)).count > 1 { doubledUnderTwoNames += 1 }
        let moments = item.deliveries.map(\.at).sorted()
        for (first, second) in zip(moments, moments.dropFirst()) {
            // Sent by one relay, and again by a later one. Stamps are of one clock, in whole milliseconds.
            guard let kill = kills.first(where: { $0.ended >= first }), kill.ended <= second,
                kill.began.since(first) <= ChaosPlan.inFlightSpan
            else {
                doubledWithoutCause += 1
                example = example ?? Self.tell(first, second, item.kind, kills)
                return
            }
            oldestDouble = max(oldestDouble, kill.began.since(first))
        }
    }

    /// When both came, beside the kills before and behind the first of them.
    private static func tell(
        _ first: UnixTime, _ second: UnixTime, _ kind: PushService, _ kills: [ChaosLedger.Kill]
    ) -> String {
        func ahead(_ kill: ChaosLedger.Kill?) -> String {
            guard let kill else { return "none" }
            return "\(kill.began.since(first).wholeMilliseconds) to "
                + "\(kill.ended.since(first).wholeMilliseconds)"
        }
        return "\(kind) again after \(second.since(first).wholeMilliseconds) ms, kill before "
            + "\(ahead(kills.last { $0.ended < first })), kill behind "
            + ahead(kills.first { $0.ended >= first })
    }

    var hasPassed: Bool { lost == 0 && doubledUnderTwoNames == 0 && doubledWithoutCause == 0 }
}
