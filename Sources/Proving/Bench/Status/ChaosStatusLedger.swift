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

    /// One notification for one phone.
    private struct Item: Sendable {
        /// By the request's number.
        var asks: [Int: Ask] = [:]
        /// `id` is the `apns-id`, empty at FCM.
        var arrivals: [(id: String, at: UnixTime)] = []

        func has(_ outcome: Outcome) -> Bool {
            asks.values.contains { $0.answers.contains { $0.outcome == outcome } }
        }
        var isOwed: Bool { has(.taken) }
    }

    private var items: [String: Item] = [:]
    private var kills: [TrialFault] = []
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
    mutating func killed(_ kill: TrialFault) { kills.append(kill) }

    mutating func waited(isListening: Bool) {
        awaited += 1
        if isListening { listening += 1 }
    }

    /// - Parameters:
    ///   - marks: what names each notification of the request.
    ///   - number: the request's; each has another.
    mutating func asked(_ marks: [String], number: Int, at moment: UnixTime) {
        asks += 1
        for mark in marks { items[mark, default: Item()].asks[number] = Ask(at: moment) }
    }

    /// - Parameter moment: when the report was sealed.
    mutating func answered(_ mark: String, number: Int, _ outcome: Outcome, at moment: UnixTime) {
        guard items[mark]?.asks[number] != nil else { return couldNotRead() }
        items[mark]?.asks[number]?.answers.append((outcome, moment))
    }

    mutating func delivered(_ mark: String, id: String, at moment: UnixTime) {
        guard items[mark] != nil else { return couldNotRead() }
        items[mark]?.arrivals.append((id, moment))
    }

    /// What the request was answered first, of this notification; `nil`: nothing yet.
    func outcome(of mark: String, number: Int) -> Outcome? {
        items[mark]?.asks[number]?.answers.first?.outcome
    }

    // MARK: Judgement

    /// The relay that was up, counted from 0.
    private func life(of moment: UnixTime) -> Int { kills.count { $0.ended < moment } }
    private func count(_ isCounted: (Item) -> Bool) -> Int { items.values.count(where: isCounted) }

    var notifications: Int { items.count }
    var taken: Int { count(\.isOwed) }
    var failed: Int { count { $0.has(.failed) } }
    var wrong: Int { count { $0.has(.wrong) } }
    /// Reported as taken, and never arrived.
    var missing: Int { count { $0.isOwed && $0.arrivals.isEmpty } }
    /// Allowed: a relay was killed before it could report.
    var unpromised: Int { count { !$0.isOwed && !$0.arrivals.isEmpty } }
    var toldToTheLast: Int {
        count { $0.isOwed && $0.asks.values.allSatisfy { life(of: $0.at) == kills.count } }
    }

    /// Reported as failed, and sent all the same.
    var sentAndFailed: Int {
        count { isSentAndFailed($0) }
    }

    private func isSentAndFailed(_ item: Item) -> Bool {
        item.arrivals.contains { !isExplained($0.at, item) } || hasFailedAfterArrival(item)
    }

    /// Whether some request can have led to what arrived then: one that had not been reported as failed.
    private func isExplained(_ arrival: UnixTime, _ item: Item) -> Bool {
        item.asks.values.contains { ask in
            ask.at <= arrival && !ask.answers.contains { $0.outcome == .failed && $0.at < arrival }
        }
    }

    /// Where nothing but one request was said: what had been sent was reported as failed.
    private func hasFailedAfterArrival(_ item: Item) -> Bool {
        guard item.asks.count == 1, let ask = item.asks.values.first else { return false }
        return ask.answers.contains { answer in
            answer.outcome == .failed && item.arrivals.contains { $0.at <= answer.at }
        }
    }

    var doubled: Int { count { $0.arrivals.count > 1 } }
    /// Doubles with no kill between the two arrivals, or one sent long before it.
    var doubledWithoutCause: Int { count { isDoubledWithoutCause($0) } }

    private func isDoubledWithoutCause(_ item: Item) -> Bool {
        let moments = item.arrivals.map(\.at).sorted()
        return zip(moments, moments.dropFirst()).contains { first, second in
            let next = kills.filter { $0.ended >= first }.min { $0.ended < $1.ended }
            guard let next, next.ended <= second else { return true }
            return next.began.since(first) > TrialFault.inFlightSpan
        }
    }

    /// What became of one that was lost, doubled without cause, or sent and failed, for who looks for the
    /// reason: milliseconds from its first arrival on, or from when it was asked for, each with the relay's
    /// number.
    private var example: String? {
        let items = items.values
        guard
            let item = items.first(where: { $0.isOwed && $0.arrivals.isEmpty })
                ?? items.first(where: { isDoubledWithoutCause($0) })
                ?? items.first(where: { !$0.arrivals.isEmpty && isSentAndFailed($0) }),
            let first = item.arrivals.map(\.at).min() ?? item.asks.values.map(\.at).min()
        else { return nil }
        func tell(_ moment: UnixTime) -> String {
            "\(moment.since(first).wholeMilliseconds)@\(life(of: moment))"
        }
        let asks = item.asks.sorted { $0.key < $1.key }.map { _, ask in
            "asked \(tell(ask.at))" + ask.answers.map { ", \($0.outcome) \(tell($0.at))" }.joined()
        }
        let names = Set(item.arrivals.map(\.id)).count
        let arrivals = item.arrivals.map { tell($0.at) }.joined(separator: ", ")
        let near = kills.map { $0.began.since(first).wholeMilliseconds }.filter { abs($0) < 20_000 }
        return "arrived \(arrivals) under \(names) names; \(asks.joined(separator: "; ")); kills \(near)"
    }

    var hasPassed: Bool {
        missing == 0 && sentAndFailed == 0 && doubledWithoutCause == 0 && wrong == 0 && refused == 0
            && neverAnswered == 0 && unreadable == 0 && registered > 0 && toldToTheLast > 0 && failed > 0
            && awaited > 0 && listening == awaited
    }

    func write(to report: inout BenchReport) {
        report.add("status_registered", registered)
        report.add("status_registrations_refused", refused)
        report.add("status_notifications", notifications)
        report.add("status_requests", asks)
        report.add("status_requests_repeated_for_want_of_an_answer", unanswered)
        report.add("status_never_answered", neverAnswered)
        report.add("status_reported_as_taken", taken)
        report.add("status_lost", missing)
        report.add("status_reported_as_failed", failed)
        report.add("status_sent_and_failed", sentAndFailed)
        report.add("status_reported_wrongly", wrong)
        report.add("status_doubled", doubled)
        report.add("status_doubled_without_cause", doubledWithoutCause)
        if let example { report.add("status_example", .text(example)) }
        report.add("status_arrived_unpromised", unpromised)
        report.add("status_told_to_the_last", toldToTheLast)
        report.add("status_starts_awaited", awaited)
        report.add("status_starts_listening", listening)
        report.add("status_unreadable", unreadable)
    }
}
