import ArgumentParser
import Bench
import RelayProgram

/// `sealbell-bench siege`.
struct BenchSiegeCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "siege",
        abstract: "Attacks a relay's listeners over loopback and measures the effect on others.",
        discussion: """
            This process plays the attackers, an origin that behaves well, and the push service; the relay \
            is this program, or that of `--relay`, in a process of its own, which may open 1,024 files. One \
            attack comes after the other, and a row says for each how many of the origin's calls were \
            answered, how many failed, how long they took, and what CPU time the relay used, beside a \
            quiet run. Passed means: no call of the origin failed, what it asked for was delivered within \
            five seconds of the attack's end, and meanwhile the admin listener answered \
            and a newcomer could sign up, but for a crowd that is large enough to take every place.

            What is done to one protocol alone is felt by others there: servers whose users are called or \
            get batches, members of a group who subscribe and get a message, people who register phones. \
            Times are then those until a call has arrived, or a phone is \
            registered. What is known beforehand (keys, boxes, bodies) is as much as there is time for: all \
            of it from six seconds on.
            """)

    @Option(help: "How long each attack lasts.")
    var seconds = 10.0

    @Option(help: "Connections of the origin, each kept.")
    var callers = 4

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "An attack to make, by the name of its row in JSON; may be repeated. By default all are made.",
            valueName: "name"))
    var attack: [String] = []

    @Option(help: "Path of another build to attack; by default this one.")
    var relay: String?

    @OptionGroup var options: TrialOptions

    func validate() throws {
        guard (0.1...3_600).contains(seconds), (1...256).contains(callers) else {
            throw ValidationError("0.1 to 3,600 seconds, 1 to 256 callers.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        _ = ProcessLimits.raiseOpenFiles()
        return try await options.run("siege", shell) { directory in
            var plan = SiegePlan(executable: try relay ?? relayExecutable(shell), directory: directory)
            plan.seconds = seconds
            plan.callers = callers
            plan.attacks = attack
            return try await SiegeTrial(plan, world: shell.world, say: shell.err).run()
        }
    }
}
