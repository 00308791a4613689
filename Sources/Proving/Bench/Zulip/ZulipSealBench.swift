import Clibsodium
import Primitives
package import PushModel
import WireFormats
import ZulipPush

/// What sealing a content in the specification's own profile costs an origin, beside libsodium's
/// `crypto_box_seal` with nothing around it.
package enum ZulipSealBench: BesidePrimitives {
    /// CPU time of ours for each of the library's.
    static let goal = 1.15
    private static let seals = 2_000

    package static let name = "zulip-seals"
    package static let abstract =
        "Measures what an origin's sealed contents cost beside libsodium's own seal."
    package static let discussion = """
        In one process, turn by turn, by its CPU time: crypto_box_seal into memory that is there \
        (bare), and the origin's way from a padded content to Base64, in the four sizes of padding. \
        Passed means: at most 1.15 times the bare seal in each.
        """
    package static let rounds = (usual: 15, span: "about a second")

    /// - Returns: whether a seal takes at most ``goal`` × the library's own.
    package static func measure(
        _ rounds: Int, _ world: World, _ report: inout BenchReport
    ) async throws -> Bool {
        let pair = X25519KeyPair.generate(world)
        let key = try PushPublicKey(base64: Base64.text(pair.publicKey))
        var worst = 0.0
        for size in ContentPadding.sizes {
            let plain = world.randomBytes(size)
            let secret = Secret(plain)
            var generator = SystemRandomNumberGenerator()
            let times = try await Rounds(
                rounds,
                [
                    Contender("bare", times: seals) { _ in sealBare(plain, to: pair.publicKey) },
                    Contender("ours", times: seals) { _ in
                        _ = try AccountBox.seal(secret, to: key, using: &generator)
                    }
                ])
            let ratio = times["ours"] / times["bare"]
            worst = max(worst, ratio.median)
            report.add("bytes_\(size)_bare", microseconds: times["bare"], digits: 1)
            report.add("bytes_\(size)", microseconds: times["ours"], digits: 1)
            report.add("bytes_\(size)_to_bare", ratio: ratio)
        }
        report.add("worst_to_bare", worst)
        report.add("goal", goal, digits: 2)
        return worst <= goal
    }

    private static func sealBare(_ plain: [UInt8], to key: [UInt8]) {
        var sealed = [UInt8](repeating: 0, count: plain.count + SealedBox.overheadBytes)
        let result = crypto_box_seal(&sealed, plain, UInt64(plain.count), key)
        precondition(result == 0, "a key that was just made")
    }
}
