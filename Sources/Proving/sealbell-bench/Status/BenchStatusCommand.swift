import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench status`.
struct BenchStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Measures Status: requests judged and answered on one core.",
        discussion: """
            In one process, turn by turn, by its CPU time: the relay's whole way with a request, from the \
            payload that a Waku node hands on to a verdict with its pushes and the sealed answer, and the \
            sum of its primitives on as many bytes. Also what the key of a topic costs, which is made once \
            for each person, and what a message of a node's answer costs where 10,000 wait and one of 1,000, \
            of 10, or each is of one of 100,000 followed topics. Passed means: the primitives are at least \
            0.7 of the whole. Store, node and \
            lane are not in it.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about half a second.")
    var rounds = 15

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            conclude(try await StatusBench(rounds: rounds, world: shell.world).run(), json: json, shell)
        }
    }
}
