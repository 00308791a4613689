import Clibsodium
import Primitives
package import PushModel
import WireFormats
import ZulipPush

/// Measures what sealing a content in the specification's own profile costs an origin, beside libsodium's
/// `crypto_box_seal` with nothing around it: in one process, turn by turn, by its CPU time. A ratio is the
/// median of the ratios of single rounds.
package struct ZulipSealBench: Sendable {
    /// CPU time of ours for each of the library's.
    static let goal = 1.15
    private static let seals = 2_000

    private let rounds: Int
    private let world: World

    /// - Parameter rounds: 3 to 1,000.
    package init(rounds: Int, world: World) {
        self.rounds = rounds
        self.world = world
    }

    /// - Returns: the report, and whether a seal takes at most ``goal`` × the library's own.
    /// - Throws: `BenchError(.badPlan)` for a bad number of rounds; what the measured code throws, which is a
    ///   bug.
    package func run() throws -> (report: BenchReport, hasPassed: Bool) {
        guard (3...NextcloudBench.roundLimit).contains(rounds) else { throw BenchError(.badPlan) }
        let pair = X25519KeyPair.generate(world)
        let key = try PushPublicKey(base64: Base64.text(pair.publicKey))
        var report = BenchReport()
        report.add("rounds", rounds)
        var worst = 0.0
        for size in ContentPadding.sizes {
            let plain = world.randomBytes(size)
            let secret = Secret(plain)
            var ratios: [Double] = []
            var (ours, bare) = ([Double](), [Double]())
            // The first round is for pages and tables.
            for round in 0...rounds {
                let library = Self.time { Self.sealBare(plain, to: pair.publicKey) }
                var generator = SystemRandomNumberGenerator()
                let own = try Self.time {
                    for _ in 0..<Self.seals { _ = try AccountBox.seal(secret, to: key, using: &generator) }
                }
                guard round > 0 else { continue }
                bare.append(library)
                ours.append(own)
                ratios.append(own / library)
            }
            let ratio = Median.of(ratios)
            worst = max(worst, ratio)
            let scale = 1e6 / Double(Self.seals)
            report.add("bytes_\(size)_bare_microseconds", Median.of(bare) * scale, digits: 1)
            report.add("bytes_\(size)_microseconds", Median.of(ours) * scale, digits: 1)
            report.add("bytes_\(size)_to_bare", ratio, digits: 3)
        }
        report.add("worst_to_bare", worst, digits: 3)
        report.add("goal", Self.goal, digits: 2)
        return (report, worst <= Self.goal)
    }

    private static func sealBare(_ plain: [UInt8], to key: [UInt8]) {
        var sealed = [UInt8](repeating: 0, count: plain.count + SealedBox.overheadBytes)
        for _ in 0..<seals {
            let result = crypto_box_seal(&sealed, plain, UInt64(plain.count), key)
            precondition(result == 0, "a key that was just made")
        }
    }

    private static func time(_ work: () throws -> Void) rethrows -> Double {
        let start = ProcessUsage.own().cpu
        try work()
        return (ProcessUsage.own().cpu - start).inSeconds
    }
}
