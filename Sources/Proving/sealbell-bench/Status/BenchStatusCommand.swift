import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench status`.
struct BenchStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Measures Status: requests answered on one core, a relay that follows 100,000 people.",
        discussion: """
            In one process, turn by turn, by its CPU time: the relay's whole way with a request, from the \
            payload that a Waku node hands on to a verdict with its pushes and the sealed answer, and the \
            sum of its primitives on as many bytes. Also what the key of a topic costs, which is made once \
            for each person, and what a message of a node's answer costs where 10,000 wait and one of 1,000, \
            of 10, or each is of one of 100,000 followed topics. Store, node and lane are not in it. Then \
            relays with a thousand people and with all of them registered are started at a simulated node: \
            time and memory of the start, and the relay's CPU time for a message on one of their topics, \
            where its key is in memory and where its row is read. Passed means: the primitives are at least \
            0.7 of the whole, and every message was answered, for less than the key of a topic costs.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about half a second.")
    var rounds = 15

    @Option(help: "Requests in a round.")
    var requests = 200

    @Option(help: "People registered at the relay; 0 leaves it out.")
    var people = 100_000

    @Option(help: "Messages on their topics, of either kind.")
    var messages = 10_000

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("status", shell) { directory in
            var plan = StatusBenchPlan(rounds: rounds)
            plan.requests = requests
            if people != 0 {
                (plan.people, plan.messages) = (people, messages)
                plan.place = StatusBenchPlan.Place(
                    executable: try relayExecutable(shell), directory: directory)
            }
            return conclude(try await StatusBench(plan, world: shell.world).run(), json: json, shell)
        }
    }
}
