/// What became of the calls of a trial of restarts.
struct RestartLedger: Sendable {
    /// How one call ended.
    enum End: Sendable, Hashable {
        /// With the status 200.
        case taken
        /// There was no connection.
        case refused
        /// The connection was broken off before the answer.
        case reset
        /// The connection ended before the answer, or there was none in time.
        case unanswered
        case otherStatus(Int)
    }

    private(set) var calls = 0
    private(set) var ends: [End: Int] = [:]
    private(set) var restarts = 0
    /// Calls during whose time the relay was stopped or started.
    private(set) var across = 0
    /// Kept connections that the relay ended with an answer, and those that it ended between two calls.
    private(set) var endedWithAnswer = 0
    private(set) var endedQuietly = 0
    private(set) var longestStop = Duration.zero
    private(set) var waits = LatencyHistogram()

    mutating func called(_ end: End, in span: Duration, across isAcross: Bool) {
        calls += 1
        ends[end, default: 0] += 1
        if isAcross { across += 1 }
        waits.record(nanoseconds: Int64(span.inSeconds * 1e9))
    }

    mutating func restarted(stoppedIn span: Duration) {
        restarts += 1
        longestStop = max(longestStop, span)
    }

    mutating func ended(withAnswer: Bool) {
        if withAnswer { endedWithAnswer += 1 } else { endedQuietly += 1 }
    }

    private func count(_ end: End) -> Int { ends[end] ?? 0 }
    private var others: Int { ends.reduce(0) { if case .otherStatus = $1.key { $0 + $1.value } else { $0 } } }

    /// Every call was answered, some of them across a restart, and the connections were kept until then.
    var hasPassed: Bool { calls > 0 && count(.taken) == calls && across > 0 && endedWithAnswer > 0 }

    /// - Parameter missing: acknowledged pushes that never arrived.
    func report(_ plan: RestartPlan, missing: Int, doubled: Int) -> (report: BenchReport, hasPassed: Bool) {
        let hasPassed = hasPassed && missing == 0 && restarts == plan.restarts
        var report = BenchReport()
        report.add("restarts", restarts)
        report.add("socket_handed_over", .flag(plan.handsSocketOver))
        report.add("seed", .text(String(plan.seed)))
        report.add("calls", calls)
        report.add("calls_across_a_restart", across)
        report.add("answered", count(.taken))
        report.add("refused", count(.refused))
        report.add("reset", count(.reset))
        report.add("unanswered", count(.unanswered))
        report.add("other_answers", others)
        report.add("connections_ended_with_an_answer", endedWithAnswer)
        report.add("connections_ended_quietly", endedQuietly)
        report.add("acknowledged_and_lost", missing)
        report.add("doubled", doubled)
        report.add("longest_stop_seconds", longestStop.inSeconds, digits: 2)
        report.add("longest_call_seconds", waits.maximum.inSeconds, digits: 2)
        report.add("passed", .flag(hasPassed))
        return (report, hasPassed)
    }
}
