import NextcloudPush
package import PushModel
import RSAKeys
import WireFormats

/// Measures what judging a batch of Nextcloud's costs, beside the library's own verification: in one process,
/// turn by turn, by its CPU time. A ratio is the median of the ratios of single rounds.
package struct NextcloudBench: Sendable {
    /// Entries judged for each bare verification.
    static let goal = 0.7
    /// Rounds beyond which nothing is learnt.
    static let roundLimit = 1_000
    private static let entries = 1_000
    /// A group chat's, and an announcement's to everybody.
    private static let users = [32, 500]

    private let rounds: Int
    private let world: World

    /// - Parameter rounds: 3 to 1,000.
    package init(rounds: Int, world: World) {
        self.rounds = rounds
        self.world = world
    }

    /// - Returns: the report, and whether entries are judged at ``goal`` × bare verifications or faster.
    /// - Throws: `BenchError(.badPlan)` for a bad number of rounds; what the measured code throws, which is a
    ///   bug.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard (3...Self.roundLimit).contains(rounds) else { throw BenchError(.badPlan) }
        var report = BenchReport()
        report.add("rounds", rounds)
        report.add("entries", Self.entries)
        var least = Double.infinity
        for users in Self.users {
            let material = try NextcloudMaterial(users: users, entries: Self.entries, world: world)
            least = min(least, try await measure(material, "users_\(users)", &report))
        }
        report.add("least_to_bare", least)
        report.add("goal", Self.goal, digits: 1)
        return (report, least >= Self.goal)
    }

    private func measure(
        _ material: NextcloudMaterial, _ name: String, _ report: inout BenchReport
    ) async throws -> Double {
        let registry = HeldRecords()
        let known = try material.relay(registry, world)
        try await material.register(at: known, registry)
        let keys = material.keys.map(\.publicKey)
        var (bare, warm, cold) = ([Double](), [Double](), [Double]())
        // The first round is for pages and tables.
        for round in 0...rounds {
            let times = [
                try await time { Self.verify(material, keys) },
                try await time { try await judge(material, known) },
                try await time { try await judge(material, material.relay(registry, world)) }
            ]
            guard round > 0 else { continue }
            bare.append(times[0])
            warm.append(times[1])
            cold.append(times[2])
        }
        report.add("\(name)_bare_verifications_per_second", perSecond(bare))
        report.add("\(name)_judged_per_second", perSecond(warm))
        report.add("\(name)_judged_with_new_keys_per_second", perSecond(cold))
        report.add("\(name)_call_milliseconds", MarmotBench.median(warm) * 1e3, digits: 1)
        let ratios = [warm, cold].map { MarmotBench.median(zip(bare, $0).map { $0 / $1 }) }
        report.add("\(name)_to_bare", ratios[0])
        report.add("\(name)_with_new_keys_to_bare", ratios[1])
        // A key is new once in a process; the goal is of those that are known.
        return ratios[0]
    }

    private func perSecond(_ times: [Double]) -> Int { Int(Double(Self.entries) / MarmotBench.median(times)) }

    /// Seconds of the process's own CPU time: one thread is busy at a time, and others on the machine do not
    /// count.
    private func time(_ work: () async throws -> Void) async throws -> Double {
        let start = ProcessUsage.own().cpu
        try await work()
        return (ProcessUsage.own().cpu - start).inSeconds
    }

    private static func verify(_ material: NextcloudMaterial, _ keys: [RSAPublicKey]) {
        for (number, pair) in material.signed.enumerated() {
            let key = keys[number % keys.count]
            let isValid = withBytes(pair.signature) { signature in
                withBytes(pair.subject) { key.isValid(signature, over: $0) }
            }
            precondition(isValid, "a signature that was just made")
        }
    }

    private func judge(_ material: NextcloudMaterial, _ relay: NextcloudRelay) async throws {
        let verdict = try await relay.receive(NextcloudMaterial.inbound("/notifications", material.body))
        guard verdict.pushes.count == material.entries else { throw BenchError(.setUpRefused) }
    }
}
