import ArgumentParser
import Bench
import RelayProgram

/// `sealbell-bench cluster`.
struct BenchClusterCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "cluster",
        abstract: "Runs several relays on one PostgreSQL under load, and makes one part after another fail.",
        discussion: """
            This process plays origin and push services and starts a PostgreSQL server with a synchronous \
            standby of its own (Debian's package postgresql); the relays are this program in processes of \
            their own. Passed means, for each scenario: everything that was acknowledged arrived, nothing \
            arrived twice but what a fault explains, no push was given a second name, no relay sent without \
            a lease, memory stayed bounded, and all relays ended in order. One report for each scenario.
            """)

    @Option(
        name: .customLong("scenario"), parsing: .upToNextOption,
        help: "Which of kills, suspension, crash, failover, cut, stall, mixed, short; else the first six.")
    var scenarios: [ClusterScenario] = []

    @Option(help: "postgres, or sqlite for one relay alone.")
    var store = TrialStore.postgres

    @Option(help: "How many relays.")
    var relays = 3

    @Option(help: "How many kills in the scenario of that name.")
    var kills = 20

    @Option(help: "How often the database server is killed.")
    var crashes = 3

    @Option(help: ArgumentHelp("How long the push services are silent.", valueName: "seconds"))
    var stall = 600

    @Option(help: ArgumentHelp("How long one relay is stopped, or cut off.", valueName: "seconds"))
    var away = 60

    @Option(help: "Pushes a second that the load aims at.")
    var rate = 200

    @OptionGroup var seed: SeedOption

    @Option(
        help: ArgumentHelp(
            "For the scenario mixed: the program of the last commit before the newest migration.",
            valueName: "file"))
    var older: String?

    @OptionGroup var options: TrialOptions

    func validate() throws {
        guard (1...3_600).contains(stall), (1...3_600).contains(away) else {
            throw ValidationError("1 to 3,600 seconds.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("cluster", kept: options.keep, shell) { directory in
            let plan = try plan(shell, directory)
            let hasPassed = try await ClusterTrial(plan, say: shell.err).run {
                tell($0, json: options.json, shell)
            }
            return hasPassed ? .done : .failed
        }
    }

    private func plan(_ shell: Shell, _ directory: String) throws -> ClusterPlan {
        let here = shell.facts.workingDirectory
        var plan = ClusterPlan(
            executable: try relayExecutable(shell), directory: directory,
            seed: seed.value(shell))
        if !scenarios.isEmpty { plan.scenarios = scenarios }
        plan.store = store
        plan.relays = relays
        plan.kills = kills
        plan.crashes = crashes
        plan.stall = .seconds(stall)
        plan.suspension = .seconds(away)
        plan.cut = .seconds(away)
        plan.rate = rate
        plan.olderExecutable = older.map { joinPath(here, $0) }
        return plan
    }
}

extension ClusterScenario: ExpressibleByArgument {}
