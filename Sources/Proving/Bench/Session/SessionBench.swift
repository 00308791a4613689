package import PushModel

/// Measures what Session costs: a message from a storage server's bytes to its pushes, and on into their
/// lanes, beside the sum of its primitives; accounts shown to a swarm; and a start with many subscriptions.
package struct SessionBench: Sendable {
    /// Sum of the primitives beside the whole way into the lane.
    static let goal = 0.7
    /// What the table of a million subscriptions may take.
    static let tableGoal = 16 << 20
    /// Devices of an account, and bytes of a message: a word, and the longest that goes along.
    private static let cases = [(1, 200), (3, 200), (1, 2_500), (3, 2_500)]

    private let plan: SessionBenchPlan
    private let world: World

    package init(_ plan: SessionBenchPlan, world: World) {
        self.plan = plan
        self.world = world
    }

    /// - Returns: the report, and whether both goals are met.
    /// - Throws: `BenchError(.badPlan)` for numbers out of bounds; what the measured code throws, which is a
    ///   bug.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard Rounds.range.contains(plan.rounds), plan.isSound else { throw BenchError(.badPlan) }
        var report = BenchReport()
        report.add("rounds", plan.rounds)
        report.add("notices", plan.notices)
        var (least, leastToLane) = (Double.infinity, Double.infinity)
        for (devices, bytes) in Self.cases {
            let parts = try await NoticeParts(plan.notices, devices: devices, bytes: bytes, world: world)
            let name = "devices_\(devices)_bytes_\(bytes)"
            let times = try await parts.dissection(name).measure(rounds: plan.rounds, digits: 2, &report)
            let ratio = times.primitives / times.whole
            report.add("\(name)_notices", perSecond: times.whole)
            report.add("\(name)_to_primitives", ratio: ratio)
            least = min(least, ratio.median)
            leastToLane = min(
                leastToLane,
                try await parts.laneWay().measure(
                    rounds: plan.rounds, forget: parts.forget, name, &report))
        }
        report.add("least_to_primitives", least)
        report.add("least_to_lane_to_primitives", leastToLane)
        report.add("goal", Self.goal, digits: 1)
        let swarm = SwarmBench(plan, world: world)
        let table = try await swarm.run(&report)
        report.add("start_table_goal_bytes", Self.tableGoal)
        return (report, leastToLane >= Self.goal && table <= Self.tableGoal)
    }
}

/// What is measured of Session.
package struct SessionBenchPlan: Sendable {
    /// 3 to 1,000.
    package var rounds: Int
    /// Notices in a round: 10 to 10,000.
    package var notices = 1_000
    /// Accounts that are shown to one swarm: 1 to a million.
    package var accounts = 100_000
    /// Storage servers of the swarm: 1 to 100.
    package var nodes = 10
    /// Subscriptions that are stored when a relay starts: 1 to ten million.
    package var stored = 1_000_000
    /// Starts the storage servers in a process of their own, so that this one's memory is the link's alone.
    /// `nil`: they stand in this process.
    package var network: (@Sendable (_ plan: SessionBenchPlan) throws -> ChildProcess)?
    /// What that process writes.
    package var log = ""

    package init(rounds: Int) { self.rounds = rounds }

    var isSound: Bool {
        (10...10_000).contains(notices) && (1...1_000_000).contains(accounts) && (1...100).contains(nodes)
            && (1...10_000_000).contains(stored)
    }
}
