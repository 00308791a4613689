import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench zulip-seals`.
struct BenchZulipSealsCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "zulip-seals",
        abstract: "Measures what an origin's sealed contents cost beside libsodium's own seal.",
        discussion: """
            In one process, turn by turn, by its CPU time: crypto_box_seal into memory that is there \
            (bare), and the origin's way from a padded content to Base64, in the four sizes of padding. \
            Passed means: at most 1.15 times the bare seal in each.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about a second.")
    var rounds = 15

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            conclude(try ZulipSealBench(rounds: rounds, world: shell.world).run(), json: json, shell)
        }
    }
}
