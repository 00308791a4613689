package import PushModel

/// Measures what Session costs: a message from a storage server's bytes to its pushes, and on into their
/// lanes, beside the sum of its primitives; accounts shown to a swarm; and a start with many subscriptions.
package struct SessionBench: Sendable {
    /// Sum of the primitives beside the whole way into the lane.
    static let goal = 0.7
    /// What the table of a million subscriptions may take.
    static let tableGoal = 16 << 20
    /// Rounds beyond which nothing is learnt.
    static let roundLimit = 1_000
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
        guard (3...Self.roundLimit).contains(plan.rounds), plan.isSound else { throw BenchError(.badPlan) }
        var report = BenchReport()
        report.add("rounds", plan.rounds)
        report.add("notices", plan.notices)
        var (least, leastToLane) = (Double.infinity, Double.infinity)
        for (devices, bytes) in Self.cases {
            let parts = try await NoticeParts(plan.notices, devices: devices, bytes: bytes, world: world)
            let name = "devices_\(devices)_bytes_\(bytes)"
            least = min(least, try await measure(parts, name, &report))
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

    private func measure(
        _ parts: NoticeParts, _ name: String, _ report: inout BenchReport
    ) async throws -> Double {
        var whole: [Double] = []
        var single: [String: [Double]] = [:]
        // The first round is for pages and tables.
        for round in 0...plan.rounds {
            let start = ProcessUsage.ownCPU()
            try await parts.judge()
            let time = (ProcessUsage.ownCPU() - start).inSeconds
            parts.forget()
            if round > 0 { whole.append(time) }
            for primitive in NoticeParts.names {
                let start = ProcessUsage.ownCPU()
                try await parts.run(primitive)
                let time = (ProcessUsage.ownCPU() - start).inSeconds
                if round > 0 { single[primitive, default: []].append(time) }
            }
        }
        let sums = whole.indices.map { round in single.values.reduce(0) { $0 + $1[round] } }
        let perNotice = 1e6 / Double(plan.notices)
        report.add("\(name)_notices_per_second", Int(1e6 / (Median.of(whole) * perNotice)))
        report.add("\(name)_microseconds", Median.of(whole) * perNotice, digits: 2)
        report.add("\(name)_primitives_microseconds", Median.of(sums) * perNotice, digits: 2)
        for primitive in NoticeParts.names {
            let time = Median.of(single[primitive] ?? [0]) * perNotice
            report.add("\(name)_\(primitive)_microseconds", time, digits: 2)
        }
        let ratio = Median.of(zip(sums, whole).map { $0 / $1 })
        report.add("\(name)_to_primitives", ratio)
        return ratio
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
