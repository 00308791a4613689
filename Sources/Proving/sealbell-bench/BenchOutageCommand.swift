import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench outage`.
struct BenchOutageCommand: SealbellCommand {
    enum Fault: String, ExpressibleByArgument, CaseIterable { case unreachable, refusing }

    static let configuration = CommandConfiguration(
        commandName: "outage",
        abstract: "Simulates a push service that is down for minutes of simulated time and then comes back.",
        discussion: """
            The delivery core over a real SQLite file, on a clock that the trial moves: pushes go on being \
            accepted while nothing can be sent. Passed means: each arrived once, no lane held more pushes in \
            memory than it has places, and no more than 64 MiB became resident beside what was at the start.
            """)

    @Option(help: "Pushes accepted in a second of simulated time; tens.")
    var rate = 1_000

    @Option(help: "How long the service is out.")
    var minutes = 10.0

    @Option(help: "No connection to it (unreachable), or 503 to everything (refusing).")
    var fault = Fault.unreachable

    @Option(help: "How many origins ask.")
    var origins = 50

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("outage", shell) { directory in
            var plan = OutagePlan(directory: directory)
            plan.rate = rate
            plan.minutes = minutes
            plan.fault = fault == .unreachable ? .unreachable : .refusing
            plan.origins = origins
            plan.residentLimitMiB = 64
            return conclude(
                try await OutageTrial(plan, world: shell.world, say: shell.err).run(), json: json, shell)
        }
    }
}

/// `sealbell-bench backlog`.
struct BenchBacklogCommand: SealbellCommand {
    enum Probe: String, ExpressibleByArgument, CaseIterable { case voip, normal }

    static let configuration = CommandConfiguration(
        commandName: "backlog",
        abstract: "Measures how long one push takes past a lane that owes very many.",
        discussion: """
            The delivery core over a real SQLite file, sending over TLS and HTTP/2 to a sink. The backlog \
            is made first and then drains; one push after another comes meanwhile, from an origin of its \
            own. Passed means: everything arrived, and no such push took longer than the goal from its \
            request to the sink's answer.
            """)

    @Option(help: "Pushes that are owed before the first one leaves; hundreds.")
    var owed = 600_000

    @Option(help: "How many origins owe them.")
    var origins = 100

    @Option(help: "What comes meanwhile: a call (voip), or one as all the others (normal).")
    var probe = Probe.voip

    @Option(help: ArgumentHelp("The longest that it may take.", valueName: "milliseconds"))
    var goal = 1_000

    @Option(help: ArgumentHelp("A sink's base URL, https://host:port; else one of ours.", valueName: "url"))
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
        try await inTrialDirectory("backlog", shell) { directory in
            var plan = BacklogPlan(directory: directory)
            plan.owed = owed
            plan.origins = origins
            plan.probeClass = probe == .voip ? .urgent : .normal
            plan.goal = .milliseconds(goal)
            if let sink, let authority {
                let pem = try trialFile(authority, shell)
                plan.sink = .standing(url: sink, authority: pem)
            }
            return conclude(
                try await BacklogBench(plan, world: shell.world, say: shell.err).run(), json: json, shell)
        }
    }
}
