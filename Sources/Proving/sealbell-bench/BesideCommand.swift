import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// A command of `sealbell-bench` that measures our own work beside its primitives.
struct BesideCommand<Measured: BesidePrimitives>: SealbellCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: Measured.name, abstract: Measured.abstract, discussion: Measured.discussion)
    }

    @Option(help: ArgumentHelp("Rounds, 3 to 1,000; each takes \(Measured.rounds.span)."))
    var rounds = Measured.rounds.usual

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await explained {
            conclude(
                try await Measured.run(rounds: rounds, world: shell.world), json: json, shell)
        }
    }
}
