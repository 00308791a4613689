package import PushModel
import StatusPush

/// Measures what Status costs: a request from a node's payload to its pushes and the sealed answer, and on
/// into their lanes, beside the sum of its primitives; the key of a topic, which is made once for each
/// person; and a poll's answer with many messages, most of them nobody's here. Then a relay with many people
/// registered.
package struct StatusBench: Sendable {
    /// Sum of the primitives beside the whole.
    static let goal = 0.7
    /// Rounds beyond which nothing is learnt.
    static let roundLimit = 1_000
    /// Notifications of a request, and bytes of each one's message: what deployed senders send, what ours do,
    /// and a group's.
    private static let cases = [(1, 0), (1, 600), (8, 0)]

    private let plan: StatusBenchPlan
    private let world: World
    private var rounds: Int { plan.rounds }

    package init(_ plan: StatusBenchPlan, world: World) {
        self.plan = plan
        self.world = world
    }

    /// - Returns: the report, and whether the goal is met, and no message of the relay with many people makes
    ///   a topic's key.
    /// - Throws: `BenchError(.badPlan)` for numbers out of bounds; what the measured code throws, which is a
    ///   bug; as ``RelayBench/run()`` where a relay is started.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard plan.isSound else { throw BenchError(.badPlan) }
        let followed = plan.place.map { FollowedBench(plan, $0, world: world) }
        let table = followed?.table()
        var report = BenchReport()
        report.add("rounds", rounds)
        report.add("requests", plan.requests)
        var (least, leastToLane) = (Double.infinity, Double.infinity)
        for (notifications, bytes) in Self.cases {
            let parts = try await RequestParts(
                plan.requests, notifications: notifications, bytes: bytes, world: world)
            let name = "notifications_\(notifications)_bytes_\(bytes)"
            least = min(least, try await measure(parts, name, &report))
            leastToLane = min(
                leastToLane,
                try await parts.laneWay().measure(rounds: rounds, name, &report))
        }
        report.add("least_to_primitives", least)
        report.add("least_to_lane_to_primitives", leastToLane)
        report.add("goal", Self.goal, digits: 1)
        let topicKey = topicKey()
        report.add("topic_key_milliseconds", topicKey.inMilliseconds, digits: 1)
        report.add("poll_messages", PollCost.messages)
        report.add("poll_followed_topics", PollCost.topics)
        for share in [1_000, 10, 1] {
            let time = try poll(PollCost(oneOf: share, world: world))
            report.add("poll_one_of_\(share)_nanoseconds_a_message", time, digits: 0)
        }
        let isQuick = min(least, leastToLane) >= Self.goal
        guard let followed, let table else { return (report, isQuick) }
        report.add("followed_table_bytes", table)
        let makesNoKey = try await followed.run(&report, topicKey: topicKey)
        return (report, isQuick && makesNoKey)
    }

    private func measure(
        _ parts: RequestParts, _ name: String, _ report: inout BenchReport
    ) async throws -> Double {
        var whole: [Double] = []
        var single: [String: [Double]] = [:]
        // The first round is for pages and tables.
        for round in 0...rounds {
            let start = ProcessUsage.ownCPU()
            try await parts.judge()
            let time = (ProcessUsage.ownCPU() - start).inSeconds
            if round > 0 { whole.append(time) }
            for primitive in RequestParts.primitives {
                let start = ProcessUsage.ownCPU()
                parts.run(primitive)
                let time = (ProcessUsage.ownCPU() - start).inSeconds
                if round > 0 { single[primitive, default: []].append(time) }
            }
        }
        let sums = whole.indices.map { round in single.values.reduce(0) { $0 + $1[round] } }
        let perRequest = 1e6 / Double(plan.requests)
        report.add("\(name)_requests_per_second", Int(1e6 / (Median.of(whole) * perRequest)))
        report.add("\(name)_microseconds", Median.of(whole) * perRequest, digits: 1)
        report.add("\(name)_primitives_microseconds", Median.of(sums) * perRequest, digits: 1)
        for primitive in RequestParts.primitives {
            let time = Median.of(single[primitive] ?? [0]) * perRequest
            report.add("\(name)_\(primitive)_microseconds", time, digits: 1)
        }
        let ratio = Median.of(zip(sums, whole).map { $0 / $1 })
        report.add("\(name)_to_primitives", ratio)
        return ratio
    }

    /// Nanoseconds a message.
    private func poll(_ cost: PollCost) throws -> Double {
        let times = try (0..<rounds).map { _ in
            let start = ProcessUsage.ownCPU()
            try cost.read()
            return (ProcessUsage.ownCPU() - start).inSeconds
        }
        return Median.of(times) * 1e9 / Double(PollCost.messages)
    }

    private func topicKey() -> Duration {
        let times = (0..<rounds).map { number in
            let topic = WakuTopic(name: Secret("topic-\(number)".utf8))
            let start = ProcessUsage.ownCPU()
            _ = TopicKey.derive(from: topic)
            return (ProcessUsage.ownCPU() - start).inSeconds
        }
        return .seconds(Median.of(times))
    }
}
