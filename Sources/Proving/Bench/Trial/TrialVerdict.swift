import PushModel

/// What a trial's ledger proves.
struct TrialVerdict: Sendable {
    /// Of the pushes of one protocol.
    struct Share: Sendable {
        var acknowledged = 0
        /// Promised, and never accepted by the push service.
        var lost = 0
    }

    let ledger: TrialLedger
    /// By the protocol's name: each that was asked in.
    private(set) var shares: [String: Share] = [:]
    /// Never arrived, and excused by the death of the relay that had promised it.
    private(set) var lostByTheDead = 0
    /// Arrived although no answer had promised it; allowed.
    private(set) var unpromised = 0
    /// Pushes that arrived at all, and those that arrived more than once.
    private(set) var arrived = 0
    private(set) var doubled = 0
    /// Two pushes were made of one; seen at APNs, where the push's id is sent.
    private(set) var doubledUnderTwoNames = 0
    /// Nothing excuses the double.
    private(set) var doubledWithoutCause = 0
    /// Promised by one relay and sent by others alone: taken over, or repeated at another relay.
    private(set) var sentByAnother = 0
    /// Arrivals from a relay that had no lease.
    private(set) var sentWithoutLease = 0
    /// One of the doubles without cause or under two names, for who looks for the reason.
    private(set) var example: String?
    /// The longest time between an arrival and the fault that explains its double.
    private(set) var oldestDouble = Duration.zero

    var pushes: Int { ledger.items.count }
    var acknowledged: Int { shares.values.reduce(0) { $0 + $1.acknowledged } }
    var lost: Int { shares.values.reduce(0) { $0 + $1.lost } }
    /// Promised since the last relay was killed.
    var ofTheLast: Int { ledger.items.values.count { $0.isPromised && $0.life == ledger.life } }

    init(_ ledger: TrialLedger) {
        self.ledger = ledger
        let faults = ledger.faults.sorted { $0.began < $1.began }
        let outages = faults.filter { $0.kind == .storeLost }
        for (mark, item) in ledger.items {
            judge(item, outages)
            if item.arrivals.count > 1 { judgeDouble(mark, item, faults) }
        }
    }

    private mutating func judge(_ item: TrialLedger.Item, _ outages: [TrialFault]) {
        if !item.arrivals.isEmpty { arrived += 1 }
        var share = shares[item.load] ?? Share()
        if item.isPromised {
            share.acknowledged += 1
            if ledger.isMissing(item) {
                share.lost += 1
            } else if item.arrivals.isEmpty {
                lostByTheDead += 1
            } else if !item.arrivals.contains(where: { $0.relay == item.promisedBy }) {
                sentByAnother += 1
            }
        } else if !item.arrivals.isEmpty {
            unpromised += 1
        }
        shares[item.load] = share
        sentWithoutLease += item.arrivals.count { arrival in outages.contains { $0.forbids(arrival) } }
    }

    private mutating func judgeDouble(_ mark: String, _ item: TrialLedger.Item, _ faults: [TrialFault]) {
        doubled += 1
        let arrivals = item.arrivals.sorted { $0.at < $1.at }
        if Set(arrivals.map(\.id).filter { !$0.isEmpty }).count > 1 {
            doubledUnderTwoNames += 1
            example = example ?? Self.tell(mark, arrivals, arrivals[0], arrivals[1], faults)
        }
        for (first, second) in zip(arrivals, arrivals.dropFirst()) {
            switch ledger.ofDoubles {
            case .death where item.life < ledger.life: continue
            case .fault:
                guard let fault = faults.first(where: { $0.explains(first, second) }) else { break }
                oldestDouble = max(oldestDouble, fault.began.since(first.at))
                continue
            case .death, .nothing: break
            }
            doubledWithoutCause += 1
            example = example ?? Self.tell(mark, arrivals, first, second, faults)
            return
        }
    }

    /// When both came, beside the faults before and behind the first of them. The mark is random and the
    /// trial's own.
    private static func tell(
        _ mark: String, _ arrivals: [TrialArrival], _ first: TrialArrival, _ second: TrialArrival,
        _ faults: [TrialFault]
    ) -> String {
        func ahead(_ fault: TrialFault?) -> String {
            guard let fault else { return "none" }
            return "\(fault.began.since(first.at).wholeMilliseconds) to "
                + "\(fault.ended.since(first.at).wholeMilliseconds)"
        }
        let steps = arrivals.map { "relay \($0.relay) at \($0.at.milliseconds) as \($0.id)" }
        return "\(mark) again after \(second.at.since(first.at).wholeMilliseconds) ms, fault before "
            + "\(ahead(faults.last { $0.ended < first.at })), fault behind "
            + "\(ahead(faults.first { $0.ended >= first.at })): \(steps.joined(separator: ", "))"
    }

    /// No push suffered what it must not.
    var hasPassed: Bool {
        lost == 0 && doubledUnderTwoNames == 0 && doubledWithoutCause == 0 && sentWithoutLease == 0
            && ledger.unbooked == 0
    }

    /// Nothing at all was wrong, and each protocol showed something.
    var isSound: Bool {
        hasPassed && ledger.unexpectedAnswers == 0 && ledger.answersWithDeadDevices == 0
            && ledger.neverAcknowledged == 0 && ledger.foreignArrivals == 0
            && !shares.isEmpty && shares.values.allSatisfy { $0.acknowledged > 0 }
    }

    func write(to report: inout BenchReport) {
        report.add("requests", ledger.requests)
        report.add("requests_acknowledged", ledger.acknowledgedRequests)
        report.add("requests_repeated_for_want_of_an_answer", ledger.unanswered)
        report.add("refused_for_now", ledger.refusedForNow)
        report.add("never_acknowledged", ledger.neverAcknowledged)
        report.add("pushes", pushes)
        report.add("pushes_acknowledged", acknowledged)
        report.add("lost", lost)
        for (name, share) in shares.sorted(by: { $0.key < $1.key }) where shares.count > 1 {
            report.add("\(name)_pushes_acknowledged", share.acknowledged)
            report.add("\(name)_lost", share.lost)
        }
        report.add("doubled", doubled)
        report.add("doubled_under_two_names", doubledUnderTwoNames)
        report.add("doubled_without_cause", doubledWithoutCause)
        if let example { report.add("example", .text(example)) }
        report.add("oldest_double_milliseconds", Int(oldestDouble.inMilliseconds))
        report.add("arrived_unpromised", unpromised)
        report.add("registrations_lost_in_answers", ledger.answersWithDeadDevices)
        report.add("foreign_arrivals", ledger.foreignArrivals)
        if ledger.unbooked > 0 { report.add("unbooked", ledger.unbooked) }
        report.add("unexpected_answers", ledger.unexpectedAnswers)
        if let status = ledger.firstUnexpectedStatus { report.add("first_unexpected_status", status) }
    }
}
