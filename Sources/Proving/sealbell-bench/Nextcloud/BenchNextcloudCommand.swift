import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench nextcloud`.
struct BenchNextcloudCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "nextcloud",
        abstract: "Measures Nextcloud batches: entries judged on one core.",
        discussion: """
            In one process, turn by turn, by its CPU time: BoringSSL's own verification of RSA-2048 \
            signatures (bare), and the relay's whole way with a call of 1,000 entries from the bytes of its \
            body to the verdict, with keys that it knows and with new ones. Passed means: it judges at least \
            0.7 times as many entries as the bare verification. The store and the sockets are not in it.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about half a second.")
    var rounds = 15

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            conclude(
                try await NextcloudBench(rounds: rounds, world: shell.world).run(), json: json, shell)
        }
    }
}
