import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench marmot`.
struct BenchMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "marmot",
        abstract: "Measures Marmot's arithmetic: tokens opened and wraps unwrapped on one core.",
        discussion: """
            In one process and on one thread, turn by turn: libsecp256k1's own ECDH on parsed keys (bare) \
            and with the X lifted to its point; an encrypted token of each format; the relay's whole way \
            with a full trigger; an unwrap beside the sum of its primitives. Passed means: each format, and \
            the relay's step with the tokens, opens at least 0.7 times as many as the bare ECDH. It begins \
            at the event; reading frames from a socket and sending the wakes are not in it.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about half a second.")
    var rounds = 31

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            conclude(
                try await MarmotBench(rounds: rounds, world: shell.world).run(), json: json, shell)
        }
    }
}
