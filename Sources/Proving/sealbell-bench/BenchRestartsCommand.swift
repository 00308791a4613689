import ArgumentParser
import Bench
import RelayProgram

/// `sealbell-bench restarts`.
struct BenchRestartsCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "restarts",
        abstract: "Restarts a relay again and again under load and counts the calls that went unanswered.",
        discussion: """
            This process plays origin and push service, and service manager: it holds the listening socket \
            and hands it to each relay (LISTEN_FDS), which is this program in a process of its own. Some \
            callers keep their connection, some make one for each call; none asks twice. Passed means: no \
            call was refused, reset, left without an answer or answered by anything but 200, and everything \
            acknowledged arrived.
            """)

    @Option(help: "How many restarts.")
    var restarts = 200

    @Option(help: "Callers that keep their connection.")
    var kept = 8

    @Option(help: "Callers that make a connection for each call.")
    var fresh = 8

    @OptionGroup var seed: SeedOption

    @Flag(help: "No socket is handed over, to show that the trial can fail.")
    var withoutSocket = false

    @OptionGroup var options: TrialOptions

    func validate() throws {
        guard (1...100_000).contains(restarts), (1...256).contains(kept), (1...256).contains(fresh) else {
            throw ValidationError("1 to 100,000 restarts, 1 to 256 callers of each kind.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await options.run("restarts", shell) { directory in
            var plan = RestartPlan(
                executable: try relayExecutable(shell), directory: directory,
                seed: seed.value(shell))
            plan.restarts = restarts
            plan.kept = kept
            plan.fresh = fresh
            plan.handsSocketOver = !withoutSocket
            return try await RestartTrial(plan, say: shell.err).run()
        }
    }
}
