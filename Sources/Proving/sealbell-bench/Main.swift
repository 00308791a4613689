import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench`: measures the relay and tries to break it. It is a separate program, because operators do
/// not need it, and the relay does not need what it links.
@main
struct SealbellBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sealbell-bench", abstract: "Measures parts of the relay, and tries to break it.",
        discussion: """
            Relays run from the program sealbell beside this one, or from the one that SEALBELL_BIN names.
            """,
        subcommands: [
            BenchSenderCommand.self, BenchRelayCommand.self, BenchBacklogCommand.self,
            BenchOutageCommand.self
        ] + StandardCommands.all + [
            BenchSharedCommand.self, BenchChaosCommand.self, BenchRestartsCommand.self,
            BenchSiegeCommand.self, BenchClusterCommand.self, ServeInDangerCommand.self
        ])

    static func main() async { await EntryPoint.main(SealbellBench.self) }
}

/// Prints what a measurement or a trial found: a JSON object or a table.
func tell(_ report: BenchReport, json: Bool, _ shell: Shell) {
    if json { shell.out(report.json()) } else { report.lines().forEach(shell.out) }
}

/// Prints the result, and exits with its status.
func conclude(
    _ outcome: (report: BenchReport, hasPassed: Bool), json: Bool, _ shell: Shell
) -> Ending {
    tell(outcome.report, json: json, shell)
    return outcome.hasPassed ? .done : .failed
}

/// Says why a measurement could not be made.
func failure(_ error: BenchError) -> CommandFailure {
    let ending: Ending =
        switch error.code {
        // Not `.failed`: that is for something that was measured and did not pass.
        case .unreachable, .relayNotReady, .malformedAnswer, .setUpRefused, .fileFault, .processFault,
            .tooLittleSpace:
            .unavailable
        case .badPlan: .usage
        }
    return CommandFailure(ending, "\(error.sentence) [\(error.codeText)]")
}
