import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench session`.
struct BenchSessionCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "session",
        abstract: "Measures Session: messages sealed on one core, accounts shown to a swarm, a large start.",
        discussion: """
            In one process, turn by turn, by its CPU time: the relay's whole way with a message, from the \
            bytes of a storage server to a verdict with its pushes, and the sum of its primitives on the \
            same bytes. Then the way goes on, through the commit to a file of SQLite into the memory of the \
            lanes, and the commit alone is one more primitive. Then accounts are shown to simulated storage \
            servers, which stand in another process, and a link starts with stored subscriptions. Passed \
            means: the primitives are at least 0.7 of the way into the lane, and the start adds 16 MiB at \
            most. The socket is not in it.
            """)

    @Option(help: "Rounds, 3 to 1,000; each takes about a tenth of a second.")
    var rounds = 15

    @Option(help: "Accounts that are shown.")
    var accounts = 100_000

    @Option(help: "Storage servers of their swarm.")
    var nodes = 10

    @Option(help: "Stored subscriptions of the start.")
    var stored = 1_000_000

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("session", shell) { directory in
            let executable = try RelayPlan.ownExecutable()
            var plan = SessionBenchPlan(rounds: rounds)
            (plan.accounts, plan.nodes, plan.stored) = (accounts, nodes, stored)
            plan.log = "\(directory)/swarm.log"
            let environment = shell.facts.environment
            plan.network = { plan in
                try ChildProcess(
                    executable, ["swarm", "--accounts", "\(plan.accounts)", "--nodes", "\(plan.nodes)"],
                    environment: environment, log: plan.log)
            }
            return conclude(
                try await SessionBench(plan, world: shell.world).run(), json: json, shell)
        }
    }
}

/// `sealbell-bench swarm`: what `session` starts.
struct SwarmCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "swarm", abstract: "Serves simulated storage servers until its input ends.",
        shouldDisplay: false)

    @Option(help: "Accounts that are to be shown.")
    var accounts = 100_000

    @Option(help: "Storage servers.")
    var nodes = 10

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            var plan = SessionBenchPlan(rounds: 3)
            (plan.accounts, plan.nodes) = (accounts, nodes)
            try await StandingSwarm.serve(plan, world: shell.world) { shell.out($0) }
            return .done
        }
    }
}
