import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// What every trial of a relay can be told.
struct TrialOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A directory for the trial's files, kept afterwards; by default a temporary one.",
            valueName: "directory"))
    var keep: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    /// Runs it in a directory of its own, and prints what it showed.
    func run(
        _ name: String, _ shell: Shell,
        _ trial: (_ directory: String) async throws -> (report: BenchReport, hasPassed: Bool)
    ) async throws -> Ending {
        try await inTrialDirectory(name, kept: keep, shell) { directory in
            conclude(try await trial(directory), json: json, shell)
        }
    }
}

extension TrialStore: ExpressibleByArgument {}

/// The seed of a trial that goes by chance.
struct SeedOption: ParsableArguments {
    @Option(help: "Seed of the plan; timing still differs between runs.")
    var seed: UInt64?

    /// One that is given, or one that is short enough to be typed again.
    func value(_ shell: Shell) -> UInt64 { seed ?? shell.world.random() >> 32 }
}
