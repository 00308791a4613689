import libsecp256k1
import MarmotPush
import Primitives
package import PushModel
import Secp256k1Keys

/// Measures what a wake of Marmot costs in arithmetic, beside the library's own multiplication and beside
/// the sum of an unwrap's primitives: in one process, on one thread, turn by turn.
///
/// A round gives each contender some 15 ms; a ratio is the median of the ratios of single rounds, so that a
/// machine that grows slower meanwhile says nothing about it.
package struct MarmotBench: Sendable {
    /// Tokens opened beside bare multiplications (issue's goal).
    static let goal = 0.7
    /// Rounds beyond which nothing is learnt.
    static let roundLimit = 1_000
    /// So many different keys, that no cache holds the table of one.
    private static let variety = 64
    /// Wraps for one turn of the relay.
    private static let wraps = 8
    /// One turn of a contender.
    private static let turn = Duration.milliseconds(15)
    /// Whole triggers: a full frame of long tokens, and as many of the short.
    private static let triggers: [(name: String, format: TokenFormat, tokens: Int)] = [
        ("push_v1_19", .pushV1, 19), ("mip05_280_25", .mip05Short, 25)
    ]
    /// Unwraps: a small group's, and that of a full frame.
    private static let unwraps = [1, 19]

    private let rounds: Int
    private let world: World

    /// - Parameter rounds: 3 to 1,000.
    package init(rounds: Int, world: World) {
        self.rounds = rounds
        self.world = world
    }

    /// Something that is repeated, and how long one takes in each round.
    private final class Contender {
        let name: String
        let work: (Int) async throws -> Void
        /// How often in one turn.
        var count = 1
        /// Nanoseconds of one, by round.
        var times: [Double] = []

        init(_ name: String, _ work: @escaping (Int) async throws -> Void) {
            (self.name, self.work) = (name, work)
        }
    }

    /// - Returns: the report, and whether tokens are opened at ``goal`` × bare multiplications or faster.
    /// - Throws: `BenchError(.badPlan)` for a bad number of rounds; what the measured code throws, which is a
    ///   bug.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard (3...Self.roundLimit).contains(rounds) else { throw BenchError(.badPlan) }
        let material = MarmotMaterial(world: world)
        let curve = BareCurve(scalar: material.server.secret)
        defer { curve.end() }
        let contenders =
            try curveContenders(curve, material) + boxContenders(material) + relayContenders(material)
            + unwrapContenders(curve, material)
        for contender in contenders { try await calibrate(contender) }
        for round in 0..<rounds {
            // Another one begins each time: nobody always follows the same.
            for at in contenders.indices {
                let contender = contenders[(at + round) % contenders.count]
                contender.times.append(try await time(contender))
            }
        }
        return report(Dictionary(uniqueKeysWithValues: contenders.map { ($0.name, $0.times) }))
    }

    /// Nanoseconds of one.
    private func time(_ contender: Contender) async throws -> Double {
        let start = world.instant()
        for at in 0..<contender.count { try await contender.work(at) }
        return (world.instant() - start).inSeconds * 1e9 / Double(contender.count)
    }

    private func calibrate(_ contender: Contender) async throws {
        // The first is slow: pages, lazy tables.
        for _ in 0..<3 {
            let one = try await time(contender)
            contender.count = min(1_000_000, max(1, Int(Self.turn.inSeconds * 1e9 / max(one, 1))))
        }
    }

    // MARK: contenders

    private func curveContenders(_ curve: BareCurve, _ material: MarmotMaterial) -> [Contender] {
        let keys = (0..<Self.variety).map { _ in Secp256k1KeyPair.generate(world).publicKey.bytes }
        var points = keys.map { curve.lift($0) }
        var out = [UInt8](repeating: 0, count: 32)
        return [
            Contender("bare") { at in curve.multiply(&points[at % Self.variety], into: &out) },
            Contender("bare_lifted") { at in
                var point = curve.lift(keys[at % Self.variety])
                curve.multiply(&point, into: &out)
            }
        ]
    }

    private func boxContenders(_ material: MarmotMaterial) throws -> [Contender] {
        try TokenFormat.allCases.map { format in
            let boxes = try material.boxes(format, Self.variety)
            return Contender("open_\(Self.name(format))") { at in
                _ = try TokenBox.decrypt(boxes[at % Self.variety], format, with: material.server)
            }
        }
    }

    private static func name(_ format: TokenFormat) -> String {
        format.rawValue.replacing("-", with: "_")
    }

    /// The relay's whole way with a trigger, and the part of it that stands before the tokens.
    private func relayContenders(_ material: MarmotMaterial) throws -> [Contender] {
        try Self.triggers.flatMap { name, format, tokens in
            let wraps = try material.wraps(format, tokens: tokens, Self.wraps).map(\.event)
            let serving = try MarmotServing(
                keys: [material.server], topic: "org.example.app", servesFCM: true)
            // A relay takes a wrap once; a new one has seen none.
            var relay = MarmotRelay(serving, world: world)
            return [
                Contender("receive_\(name)") { at in
                    if at % Self.wraps == 0 { relay = MarmotRelay(serving, world: world) }
                    let inbound = MarmotInbound(wraps[at % Self.wraps], relay: 0)
                    let verdict = try await relay.receive(inbound)
                    guard verdict.pushes.count == tokens else { throw BenchError(.setUpRefused) }
                },
                Contender("before_tokens_\(name)") { at in
                    let opened = try GiftWrap.unwrap(wraps[at % Self.wraps], with: material.server)
                    let trigger = try TriggerContent(reading: opened.event)
                    for chunk in trigger.chunks { _ = SHA256.hash(chunk) }
                }
            ]
        }
    }

    private func unwrapContenders(_ curve: BareCurve, _ material: MarmotMaterial) throws -> [Contender] {
        try Self.unwraps.flatMap { tokens in
            let wrap = try material.wraps(.pushV1, tokens: tokens, 1)[0]
            let parts = try UnwrapParts(wrap, material.server, curve)
            let whole = Contender("unwrap_\(tokens)") { _ in
                let event = try NostrEvent.parse(wrap.text)
                _ = try GiftWrap.unwrap(event, with: material.server)
            }
            return [whole]
                + UnwrapParts.names.map { name in
                    Contender("unwrap_\(tokens)_\(name)") { _ in parts.run(name) }
                }
        }
    }

    // MARK: report

    private func report(_ times: [String: [Double]]) -> (report: BenchReport, hasPassed: Bool) {
        func of(_ name: String) -> [Double] { times[name] ?? [] }
        func ratio(_ first: [Double], _ second: [Double]) -> Double {
            Self.median(zip(first, second).map { $0 / $1 })
        }
        var report = BenchReport()
        report.add("rounds", rounds)
        report.add("bare_ecdh_per_second", Int(1e9 / Self.median(of("bare"))))
        report.add("bare_ecdh_with_lift_per_second", Int(1e9 / Self.median(of("bare_lifted"))))
        var least = Double.infinity
        for format in TokenFormat.allCases {
            let name = "open_\(Self.name(format))"
            report.add("\(name)_per_second", Int(1e9 / Self.median(of(name))))
            let share = ratio(of("bare"), of(name))
            report.add("\(name)_to_bare", share)
            report.add("\(name)_to_bare_with_lift", ratio(of("bare_lifted"), of(name)))
            least = min(least, share)
        }
        for (name, _, tokens) in Self.triggers {
            let whole = of("receive_\(name)").map { $0 / Double(tokens) }
            let tokensAlone = zip(of("receive_\(name)"), of("before_tokens_\(name)"))
                .map { ($0 - $1) / Double(tokens) }
            report.add("relay_\(name)_tokens_per_second", Int(1e9 / Self.median(whole)))
            report.add("relay_\(name)_to_bare", ratio(of("bare"), whole))
            report.add("relay_\(name)_step_9_tokens_per_second", Int(1e9 / Self.median(tokensAlone)))
            let share = ratio(of("bare"), tokensAlone)
            report.add("relay_\(name)_step_9_to_bare", share)
            least = min(least, share)
        }
        for tokens in Self.unwraps {
            let name = "unwrap_\(tokens)"
            let parts = UnwrapParts.names.map { of("\(name)_\($0)") }
            let sum = (0..<rounds).map { round in parts.reduce(0) { $0 + $1[round] } }
            report.add("\(name)_microseconds", Self.median(of(name)) / 1e3, digits: 1)
            report.add("\(name)_primitives_microseconds", Self.median(sum) / 1e3, digits: 1)
            report.add("\(name)_to_primitives", ratio(of(name), sum))
            for part in UnwrapParts.names {
                let time = Self.median(of("\(name)_\(part)"))
                report.add("\(name)_\(part)_microseconds", time / 1e3, digits: 1)
            }
        }
        report.add("least_to_bare", least)
        report.add("goal", Self.goal, digits: 1)
        return (report, least >= Self.goal)
    }

    /// - Parameter values: at least one.
    static func median(_ values: [Double]) -> Double { Median.of(values) }
}
