import PushModel

/// Writes down what a scenario showed.
enum ClusterReport {
    static func make(
        _ scenario: ClusterScenario, _ plan: ClusterPlan, _ run: TrialRun, _ outcome: ClusterOutcome
    ) -> (report: BenchReport, hasPassed: Bool) {
        let ledger = run.ledger { $0 }
        let verdict = TrialVerdict(ledger)
        let peak = Double(run.peaks.max() ?? 0) / 1_048_576
        let back = ledger.serviceBackAfter
        let isBack = back.map { scenario != .failover || $0 < plan.failoverLimit } ?? false
        let hasPassed =
            verdict.isSound && outcome.drainedIn != nil && isBack
            && outcome.exitStatuses.allSatisfy { $0 == 0 } && peak <= plan.memoryLimitMiB
            && outcome.owed == 0
            && (plan.relays == 1 || verdict.sentByAnother > 0
                || !ClusterScenario.takingOver.contains(scenario))
        var report = BenchReport()
        report.add("scenario", .text(scenario.rawValue))
        report.add("store", .text(plan.store.rawValue))
        report.add("relays", plan.relays)
        report.add("faults", max(ledger.faults.count, 1))
        report.add("seed", .text(String(plan.seed)))
        verdict.write(to: &report)
        report.add("sent_without_lease", verdict.sentWithoutLease)
        report.add("sent_by_another_relay", verdict.sentByAnother)
        report.add("service_back_seconds", back?.inSeconds ?? -1, digits: 2)
        report.add("drain_seconds", outcome.drainedIn?.inSeconds ?? -1, digits: 1)
        report.add("left_owed", outcome.owed)
        report.add("most_resident_mib", peak, digits: 0)
        report.add("relays_that_ended_well", outcome.exitStatuses.count { $0 == 0 })
        report.add("passed", .flag(hasPassed))
        return (report, hasPassed)
    }
}
