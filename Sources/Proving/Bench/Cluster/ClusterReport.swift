import PushModel

/// Writes down what a scenario showed.
enum ClusterReport {
    static func make(
        _ scenario: ClusterScenario, _ run: ClusterRun, _ outcome: ClusterOutcome
    ) -> (report: BenchReport, hasPassed: Bool) {
        let ledger = run.ledger { $0 }
        let verdict = ClusterResult(ledger)
        let peak = Double(run.peaks.max() ?? 0) / 1_048_576
        let back = ledger.serviceBackAfter
        let isBack = back.map { scenario != .failover || $0 < run.plan.failoverLimit } ?? false
        let hasPassed =
            verdict.hasPassed && verdict.acknowledged > 0 && outcome.drainedIn != nil && isBack
            && outcome.exitStatuses.allSatisfy { $0 == 0 } && ledger.unexpectedStatuses.isEmpty
            && ledger.givenUp == 0 && ledger.answersWithDeadDevices == 0 && ledger.foreignArrivals == 0
            && peak <= run.plan.memoryLimitMiB && outcome.owed == 0
            && (!scenario.needsTakeOver || run.plan.relays == 1 || verdict.sentByAnother > 0)
        var report = BenchReport()
        report.add("scenario", .text(scenario.rawValue))
        report.add("store", .text(run.plan.store.rawValue))
        report.add("relays", run.plan.relays)
        report.add("faults", max(ledger.faults.count, 1))
        report.add("seed", .text(String(run.plan.seed)))
        report.add("requests", ledger.requests)
        report.add("requests_acknowledged", ledger.acknowledgedRequests)
        report.add("requests_repeated_for_want_of_an_answer", ledger.unanswered)
        report.add("refused_for_now", ledger.refusedForNow)
        report.add("given_up", ledger.givenUp)
        report.add("pushes", verdict.pushes)
        report.add("pushes_acknowledged", verdict.acknowledged)
        report.add("lost", verdict.lost)
        report.add("doubled", verdict.doubled)
        report.add("doubled_under_two_names", verdict.doubledUnderTwoNames)
        report.add("doubled_without_cause", verdict.doubledWithoutCause)
        report.add("sent_without_lease", verdict.sentWithoutLease)
        report.add("sent_by_another_relay", verdict.sentByAnother)
        if let example = verdict.example { report.add("example", .text(example)) }
        report.add("arrived_unpromised", verdict.unpromised)
        report.add("registrations_lost_in_answers", ledger.answersWithDeadDevices)
        report.add("foreign_arrivals", ledger.foreignArrivals)
        report.add("unexpected_answers", ledger.unexpectedStatuses.count)
        if let status = ledger.unexpectedStatuses.first { report.add("first_unexpected_status", status) }
        report.add("service_back_seconds", back?.inSeconds ?? -1, digits: 2)
        report.add("drain_seconds", outcome.drainedIn?.inSeconds ?? -1, digits: 1)
        report.add("left_owed", outcome.owed)
        report.add("most_resident_mib", peak, digits: 0)
        report.add("relays_that_ended_well", outcome.exitStatuses.count { $0 == 0 })
        report.add("passed", .flag(hasPassed))
        return (report, hasPassed)
    }
}
