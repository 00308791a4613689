import NIOCore
import NIOPosix
import PushModel
import PushTesting

/// Several relays on one database under steady load, and one misfortune after the other.
///
/// This process is the origin and the push services (judging simulators over real TLS and HTTP/2) and drives
/// the database server; each relay is the real program in a process of its own. Each push carries a
/// ciphertext that exists once, by which its arrivals are counted, and each relay has push services of its
/// own, by which it is known who sent it. A request that got no answer is asked again with the same bytes,
/// mostly at another relay.
package final class ClusterTrial: Sendable {
    private let plan: ClusterPlan
    private let say: @Sendable (String) -> Void

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: ClusterPlan, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.say = say
    }

    /// Runs the scenarios one behind the other, each with servers and relays of its own.
    ///
    /// - Parameter tell: takes each scenario's report as it is there.
    /// - Returns: whether nothing was violated.
    /// - Throws: `BenchError`, `PostgresClusterFault`: the trial could not be made.
    package func run(_ tell: @Sendable (BenchReport) -> Void) async throws -> Bool {
        try plan.check()
        var haveAllPassed = true
        for (number, scenario) in plan.scenarios.enumerated() {
            say("\(scenario.rawValue) …")
            let run = TrialRun(seed: plan.seed &+ UInt64(number), relays: plan.relays)
            let outcome = try await live(through: scenario, run)
            let (report, hasPassed) = ClusterReport.make(scenario, plan, run, outcome)
            tell(report)
            haveAllPassed = haveAllPassed && hasPassed
        }
        return haveAllPassed
    }

    private func live(through scenario: ClusterScenario, _ run: TrialRun) async throws -> ClusterOutcome {
        let group = MultiThreadedEventLoopGroup.singleton
        let directory = "\(plan.directory)/\(scenario.rawValue)"
        try makeDirectory(directory)
        var executables = Array(repeating: plan.executable, count: plan.relays)
        if scenario == .mixed, let older = plan.olderExecutable { executables[1] = older }
        let stage = try await ClusterStage.start(
            run, plan.store, executables: executables, isCut: scenario == .cut, directory: directory,
            group: group)
        return try await ending {
            await stage.end()
        } after: {
            try await live(through: scenario, run, stage, group)
        }
    }

    private func live(
        through scenario: ClusterScenario, _ run: TrialRun, _ stage: ClusterStage,
        _ group: any EventLoopGroup
    ) async throws -> ClusterOutcome {
        let origin = try await stage.makeOrigin(run, devices: plan.devices)
        let loads = [RelayPlan.load]
        return try await run.live(
            watchers: [{ try await run.collect(stage.services, loads) }, { try await run.weigh() }],
            callers: run.callers(plan.workers, plan.manners, group) { _ in (loads[0], origin) }
        ) {
            try await ClusterFaults(plan: plan, run: run, stage: stage).happen(scenario)
        } after: {
            let drained = try await run.drain(within: ClusterPlan.drainSpan)
            // What had arrived before its relay was killed is owed until that relay's lease has run out.
            try await run.wait(within: ClusterPlan.drainSpan) { try await stage.owed() == 0 }
            let statuses = await stage.stopRelays(run)
            return ClusterOutcome(
                drainedIn: drained, exitStatuses: statuses, owed: try await stage.owed())
        }
    }
}

/// How a scenario ended.
struct ClusterOutcome: Sendable {
    /// `nil`: something acknowledged never arrived.
    var drainedIn: Duration?
    /// Of the relays' graceful ends; `nil` for one that had to be killed.
    var exitStatuses: [Int32?]
    /// Pushes that the store holds after that. All requests were answered and everything arrived, so whatever
    /// is left would be owed until its custody ends.
    var owed: Int
}
