/// What became of the calls of a trial of restarts.
struct RestartLedger: Sendable {
    /// How one call ended, as the report has it.
    enum End: String, Sendable, CaseIterable {
        /// With the status 200.
        case taken = "answered"
        /// There was no connection.
        case refused
        /// The connection was broken off before the answer.
        case reset
        /// The connection ended before the answer, or there was none in time.
        case unanswered
        case otherStatus = "other_answers"
    }

    private(set) var calls = 0
    private(set) var ends: [End: Int] = [:]
    private(set) var restarts = 0
    /// Calls during whose time the relay was stopped or started.
    private(set) var across = 0
    /// Kept connections that the relay ended with an answer, and those that it ended between two calls.
    var endedWithAnswer = 0
    var endedQuietly = 0
    /// Grows at each stop and at each start.
    var turn = 0
    private(set) var longestStop = Duration.zero
    private(set) var waits = LatencyHistogram()

    mutating func called(_ end: End, in span: Duration, across isAcross: Bool) {
        calls += 1
        ends[end, default: 0] += 1
        if isAcross { across += 1 }
        waits.record(nanoseconds: Int64(span.inSeconds * 1e9))
    }

    mutating func restarted(stoppedIn span: Duration) {
        turn += 1
        restarts += 1
        longestStop = max(longestStop, span)
    }

    /// Every call was answered, some of them across a restart, and the connections were kept until then.
    var hasPassed: Bool { calls > 0 && ends[.taken] == calls && across > 0 && endedWithAnswer > 0 }

    func report(
        _ plan: RestartPlan, _ verdict: TrialVerdict
    ) -> (report: BenchReport, hasPassed: Bool) {
        let hasPassed =
            hasPassed && verdict.lost == 0 && verdict.ledger.unbooked == 0 && restarts == plan.restarts
        var report = BenchReport()
        report.add("restarts", restarts)
        report.add("socket_handed_over", .flag(plan.handsSocketOver))
        report.add("seed", .text(String(plan.seed)))
        report.add("calls", calls)
        report.add("calls_across_a_restart", across)
        for end in End.allCases { report.add(end.rawValue, ends[end] ?? 0) }
        report.add("connections_ended_with_an_answer", endedWithAnswer)
        report.add("connections_ended_quietly", endedQuietly)
        report.add("acknowledged_and_lost", verdict.lost)
        report.add("doubled", verdict.doubled)
        report.add("longest_stop_seconds", longestStop.inSeconds, digits: 2)
        report.add("longest_call_seconds", waits.maximum.inSeconds, digits: 2)
        report.add("passed", .flag(hasPassed))
        return (report, hasPassed)
    }
}
