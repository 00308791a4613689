package import PushModel
import StatusPush

/// Measures what Status costs: a request from a node's payload to its pushes and the sealed answer, and on
/// into their lanes, beside the sum of its primitives; the key of a topic, which is made once for each
/// person; and a poll's answer with many messages, most of them nobody's here. Then a relay with many people
/// registered.
package struct StatusBench: Sendable {
    /// Sum of the primitives beside the whole.
    static let goal = 0.7
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
            let times = try await parts.dissection(name).measure(rounds: rounds, digits: 1, &report)
            let ratio = times.primitives / times.whole
            report.add("\(name)_requests", perSecond: times.whole)
            report.add("\(name)_to_primitives", ratio: ratio)
            least = min(least, ratio.median)
            leastToLane = min(
                leastToLane,
                try await parts.laneWay().measure(rounds: rounds, name, &report))
        }
        report.add("least_to_primitives", least)
        report.add("least_to_lane_to_primitives", leastToLane)
        report.add("goal", Self.goal, digits: 1)
        let topicKey = try await seconds(
            Contender("topic_key") { _ in
                let topic = WakuTopic(name: Secret("topic-\(world.random())".utf8))
                _ = TopicKey.derive(from: topic)
            })
        report.add("topic_key_milliseconds", topicKey * 1e3, digits: 1)
        report.add("poll_messages", PollCost.messages)
        report.add("poll_followed_topics", PollCost.topics)
        for share in [1_000, 10, 1] {
            let cost = PollCost(oneOf: share, world: world)
            let time = try await seconds(
                Contender("poll", batch: PollCost.messages) { _ in try cost.read() })
            report.add("poll_one_of_\(share)_nanoseconds_a_message", time * 1e9, digits: 0)
        }
        let isQuick = min(least, leastToLane) >= Self.goal
        guard let followed, let table else { return (report, isQuick) }
        report.add("followed_table_bytes", table)
        let makesNoKey = try await followed.run(&report, topicKey: .seconds(topicKey))
        return (report, isQuick && makesNoKey)
    }

    /// By itself.
    private func seconds(_ contender: Contender) async throws -> Double {
        try await Rounds(rounds, [contender])[contender.name].median
    }
}
