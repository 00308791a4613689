import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench nextcloud-seals`.
struct BenchNextcloudSealsCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "nextcloud-seals",
        abstract: "Measures what an origin's Nextcloud pushes cost beside bare RSA-2048.",
        discussion: """
            In one process, turn by turn, by its CPU time: BoringSSL's own encryption and signature for 100 \
            devices (bare), and the origin's way from a notification to the entries of its calls. Passed \
            means: at least 0.9 times the bare rate.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about half a second.")
    var rounds = 15

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            conclude(try NextcloudSealBench(rounds: rounds, world: shell.world).run(), json: json, shell)
        }
    }
}
