import ArgumentParser
import Bench
import RelayProgram

/// `sealbell-bench chaos`.
struct BenchChaosCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "chaos",
        abstract: "Kills a relay again and again under load and counts what was lost.",
        discussion: """
            This process plays origin and push service; the relay is this program in a process of its own, \
            on SQLite, or on a PostgreSQL server that is made for the trial. Passed means: everything that \
            was acknowledged arrived, nothing was doubled but what was in flight at a kill, and no push was \
            given a second name. \(ChaosPlan.companions)
            """)

    @Option(help: "How many kills.")
    var kills = 200

    @Option(help: "sqlite or postgres.")
    var store = TrialStore.sqlite

    @OptionGroup var seed: SeedOption

    @Option(help: "Callers that ask at the same time.")
    var workers = 8

    @Option(help: ArgumentHelp("Power cuts in place of kills: the preloaded shim.", valueName: "file"))
    var shim: String?

    @Option(help: ArgumentHelp("With --shim: what puts the disk's image in place.", valueName: "file"))
    var cut: String?

    @Option(
        help: ArgumentHelp("With --shim: share of writes that reach the disk early.", valueName: "percent"))
    var early = 0

    @Option(
        help: ArgumentHelp("No kills: traces the relay's system calls into this file.", valueName: "file"))
    var trace: String?

    @Option(help: ArgumentHelp("With --trace: the answered requests and their pushes.", valueName: "file"))
    var ledger: String?

    @Option(help: "With --trace: how many requests.")
    var requests = 300

    @Flag(
        help: """
            Runs the relay with synchronous=NORMAL (PostgreSQL: synchronous_commit=off), to show that the \
            trial can fail.
            """)
    var dangerSynchronousNormal = false

    @OptionGroup var options: TrialOptions

    func validate() throws {
        if (shim == nil) != (cut == nil) { throw ValidationError("--shim and --cut go together.") }
        if (trace == nil) != (ledger == nil) { throw ValidationError("--trace and --ledger go together.") }
        if trace != nil, shim != nil { throw ValidationError("Trace or cut, not both.") }
        guard (1...100_000).contains(kills), (1...256).contains(workers), (0...100).contains(early) else {
            throw ValidationError("1 to 100,000 kills, 1 to 256 workers, 0 to 100 percent.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await options.run("chaos", shell) { directory in
            try await ChaosTrial(try plan(shell, directory), say: shell.err).run()
        }
    }

    private func plan(_ shell: Shell, _ directory: String) throws -> ChaosPlan {
        let here = shell.facts.workingDirectory
        var plan = ChaosPlan(
            executable: try relayExecutable(shell), directory: directory,
            seed: seed.value(shell))
        plan.store = store
        plan.kills = kills
        plan.workers = workers
        plan.withoutSync = dangerSynchronousNormal
        if let shim, let cut {
            plan.powerCuts = ChaosPlan.PowerCuts(
                shim: joinPath(here, shim), cut: joinPath(here, cut), earlyPercent: early)
        }
        if let trace, let ledger {
            plan.trace = ChaosPlan.Trace(
                file: joinPath(here, trace), ledger: joinPath(here, ledger), requests: requests)
        }
        return plan
    }
}
