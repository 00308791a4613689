import ArgumentParser
import Bench
import Foundation
import PushModel
import RelayProgram

/// `sealbell-bench forms`.
struct BenchFormsCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "forms",
        abstract: "Measures pushes of Zulip's servers in their three forms, in turn.",
        discussion: """
            Starts a relay, signs a server up for each form, and drives it with ten devices a request, a \
            round of each form after the other. The sink stands already (--sink), or is a simulated APNs in \
            this process.
            """)

    @Option(help: "Rounds of each form, 1 to 100.")
    var rounds = 5

    @Option(help: "Seconds of one, 0.1 to 60.")
    var seconds = 4.0

    @Option(help: ArgumentHelp("The sink's base URL, https://host:port.", valueName: "url"))
    var sink: String?

    @Option(
        name: .customLong("ca"), help: ArgumentHelp("With --sink: its authority, PEM.", valueName: "file"))
    var authority: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    func validate() throws {
        if (sink == nil) != (authority == nil) { throw ValidationError("--sink and --ca go together.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        var standing: FormsBench.Sink?
        if let sink, let authority {
            let path = joinPath(shell.facts.workingDirectory, authority)
            standing = (sink, try String(contentsOfFile: path, encoding: .utf8))
        }
        return try await inTrialDirectory("forms", shell) { directory in
            let bench = FormsBench(
                rounds: rounds, seconds: seconds, executable: try relayExecutable(shell),
                directory: directory, sink: standing, world: shell.world)
            return conclude(try await bench.run(), json: json, shell)
        }
    }
}
