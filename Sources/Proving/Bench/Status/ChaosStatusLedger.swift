import PushModel

/// What was asked, what was reported, what arrived, each with its moment, and when relays ended. Judged at
/// the end.
///
/// A notification that is reported as taken is owed across every kill. One that is reported as failed is
/// over: no relay sends it, also not one that starts later and has the same request from the network's store
/// (decision 0070). Only another request may bring it.
struct ChaosStatusLedger: Sendable {
    enum Outcome: Sendable, Hashable {
        case taken
        /// INTERNAL_ERROR.
        case failed
        /// Whatever else a report may say, of which nothing is true here.
        case wrong
    }

    /// One request that had the notification in it.
    private struct Ask: Sendable {
        var at: UnixTime
        /// One, if all is well.
        var answers: [(outcome: Outcome, at: UnixTime)] = []
    }

    /// What was taken is promised.
    private var book = TrialLedger()
    /// For each notification, those by the request's number.
    private var asked: [String: [Int: Ask]] = [:]
    private(set) var asks = 0
    private(set) var registered = 0
    /// Registrations that were refused.
    private(set) var refused = 0
    /// Requests without an answer in the time that senders wait, and those without one in the end.
    private(set) var unanswered = 0
    private(set) var neverAnswered = 0
    /// Lives in which the relay was waited for, and those in which it was seen to listen.
    private(set) var awaited = 0
    private(set) var listening = 0
    /// Answers and arrivals that nobody can read, or that nobody asked for.
    private(set) var unreadable = 0

    mutating func didRegister() { registered += 1 }
    mutating func wasRefused() { refused += 1 }
    mutating func wasUnanswered() { unanswered += 1 }
    mutating func wasNeverAnswered() { neverAnswered += 1 }
    mutating func couldNotRead() { unreadable += 1 }
    mutating func killed(_ kill: TrialFault) { book.happened(kill) }

    mutating func waited(isListening: Bool) {
        awaited += 1
        if isListening { listening += 1 }
    }

    /// - Parameters:
    ///   - marks: what names each notification of the request.
    ///   - number: the request's; each has another.
    mutating func asked(_ marks: [String], number: Int, at moment: UnixTime) {
        asks += 1
        // One that is asked for again has its arrivals still.
        book.asked(marks.filter { asked[$0] == nil }, of: "status")
        for mark in marks { asked[mark, default: [:]][number] = Ask(at: moment) }
    }

    /// - Parameter moment: when the report was sealed.
    mutating func answered(_ mark: String, number: Int, _ outcome: Outcome, at moment: UnixTime) {
        guard asked[mark]?[number] != nil else { return couldNotRead() }
        asked[mark]?[number]?.answers.append((outcome, moment))
        if outcome == .taken { book.acknowledged([mark]) }
    }

    mutating func delivered(_ mark: String, id: String, at moment: UnixTime) {
        if !book.arrived(mark, TrialArrival(id: id, at: moment)) { couldNotRead() }
    }

    /// What the request was answered first, of this notification; `nil`: nothing yet.
    func outcome(of mark: String, number: Int) -> Outcome? { asked[mark]?[number]?.answers.first?.outcome }

    // MARK: Judgement

    /// Reported as taken, and never arrived.
    var missing: Int { book.missing }
    var verdict: TrialVerdict { TrialVerdict(book) }

    /// The relay that was up, counted from 0.
    private func life(of moment: UnixTime) -> Int { book.faults.count { $0.ended < moment } }

    private func count(_ outcome: Outcome) -> Int {
        asked.values.count { asks in
            asks.values.contains { $0.answers.contains { $0.outcome == outcome } }
        }
    }
    var taken: Int { count(.taken) }
    var failed: Int { count(.failed) }
    var wrong: Int { count(.wrong) }
    var toldToTheLast: Int {
        asked.count { mark, asks in
            book.items[mark]?.isPromised == true
                && asks.values.allSatisfy { life(of: $0.at) == book.faults.count }
        }
    }

    /// Reported as failed, and sent all the same.
    var sentAndFailed: Int { asked.count { isSentAndFailed($0.key, $0.value) } }

    private func isSentAndFailed(_ mark: String, _ asks: [Int: Ask]) -> Bool {
        let moments = book.items[mark]?.arrivals.map(\.at) ?? []
        return moments.contains { !isExplained($0, asks) } || hasFailedAfter(moments, asks)
    }

    /// Whether some request can have led to what arrived then: one that had not been reported as failed.
    private func isExplained(_ arrival: UnixTime, _ asks: [Int: Ask]) -> Bool {
        asks.values.contains { ask in
            ask.at <= arrival && !ask.answers.contains { $0.outcome == .failed && $0.at < arrival }
        }
    }

    /// Where nothing but one request was said: what had been sent was reported as failed.
    private func hasFailedAfter(_ arrivals: [UnixTime], _ asks: [Int: Ask]) -> Bool {
        guard asks.count == 1, let ask = asks.values.first else { return false }
        return ask.answers.contains { answer in
            answer.outcome == .failed && arrivals.contains { $0 <= answer.at }
        }
    }

    /// What became of one that was lost, or sent and failed, for who looks for the reason: milliseconds from
    /// its first arrival on, or from when it was asked for, each with the relay's number.
    private var example: String? {
        func isOdd(_ mark: String, _ asks: [Int: Ask]) -> Bool {
            book.items[mark].map(book.isMissing) == true || isSentAndFailed(mark, asks)
        }
        guard let (mark, asks) = asked.first(where: { isOdd($0.key, $0.value) }),
            let arrivals = book.items[mark]?.arrivals,
            let first = arrivals.map(\.at).min() ?? asks.values.map(\.at).min()
        else { return verdict.example }
        func tell(_ moment: UnixTime) -> String {
            "\(moment.since(first).wholeMilliseconds)@\(life(of: moment))"
        }
        let told = asks.sorted { $0.key < $1.key }.map { _, ask in
            "asked \(tell(ask.at))" + ask.answers.map { ", \($0.outcome) \(tell($0.at))" }.joined()
        }
        let names = Set(arrivals.map(\.id)).count
        let came = arrivals.map { tell($0.at) }.joined(separator: ", ")
        let near = book.faults.map { $0.began.since(first).wholeMilliseconds }.filter { abs($0) < 20_000 }
        return "arrived \(came) under \(names) names; \(told.joined(separator: "; ")); kills \(near)"
    }

    var hasPassed: Bool {
        let verdict = verdict
        return verdict.lost == 0 && sentAndFailed == 0 && verdict.doubledWithoutCause == 0 && wrong == 0
            && book.unbooked == 0 && refused == 0 && neverAnswered == 0 && unreadable == 0 && registered > 0
            && toldToTheLast > 0 && failed > 0 && awaited > 0 && listening == awaited
    }

    func write(to report: inout BenchReport) {
        let verdict = verdict
        report.add("status_registered", registered)
        report.add("status_registrations_refused", refused)
        report.add("status_notifications", verdict.pushes)
        report.add("status_requests", asks)
        report.add("status_requests_repeated_for_want_of_an_answer", unanswered)
        report.add("status_never_answered", neverAnswered)
        report.add("status_reported_as_taken", taken)
        report.add("status_lost", verdict.lost)
        report.add("status_reported_as_failed", failed)
        report.add("status_sent_and_failed", sentAndFailed)
        report.add("status_reported_wrongly", wrong)
        report.add("status_doubled", verdict.doubled)
        report.add("status_doubled_without_cause", verdict.doubledWithoutCause)
        if let example { report.add("status_example", .text(example)) }
        report.add("status_arrived_unpromised", verdict.unpromised)
        report.add("status_told_to_the_last", toldToTheLast)
        report.add("status_starts_awaited", awaited)
        report.add("status_starts_listening", listening)
        report.add("status_unreadable", unreadable)
    }
}
