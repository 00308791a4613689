import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench strangers`.
struct BenchStrangersCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "strangers",
        abstract: "Measures whether an answer's time tells that another origin's device exists.",
        discussion: """
            Starts a relay, signs two origins up, registers devices of the one, and lets the other name them \
            and devices that nobody has, one request at a time in random order. A share of one half says \
            that the times tell nothing.
            """)

    @Option(help: "Requests of each kind, 100 to 1,000,000.")
    var pairs = 10_000

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("strangers", shell) { directory in
            let bench = StrangersBench(
                pairs: pairs, executable: try relayExecutable(shell), directory: directory, world: shell.world
            )
            return conclude(try await bench.run(), json: json, shell)
        }
    }
}
