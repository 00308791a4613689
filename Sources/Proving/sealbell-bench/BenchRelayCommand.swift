import ArgumentParser
import Bench
import Foundation
import PushModel
import RelayProgram

/// `sealbell-bench relay`.
struct BenchRelayCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "relay",
        abstract: "Drives a whole relay: HTTP in, durable, HTTP/2 out.",
        discussion: """
            Signs a server up, registers devices, seals distinct bodies, and then sends them from this \
            process. The relay is a running one (--at), or one started for this, in front of a sink that \
            stands already (--sink) or of a simulated APNs with a round trip (--round-trip). With a rate the \
            load is open: latency counts from the moment a request was due.
            """)

    @Option(
        name: .customLong("at"), help: ArgumentHelp("A running relay's state directory.", valueName: "state"))
    var state: String?

    @Option(help: ArgumentHelp("The sink's base URL, https://host:port.", valueName: "url"))
    var sink: String?

    @Option(
        name: .customLong("ca"), help: ArgumentHelp("With --sink: its authority, PEM.", valueName: "file"))
    var authority: String?

    @Option(help: ArgumentHelp("With --sink: its process, whose CPU time is read.", valueName: "pid"))
    var sinkPid: Int32?

    @Option(help: ArgumentHelp("Use a simulated APNs with this round-trip time.", valueName: "milliseconds"))
    var roundTrip: Int?

    @Flag(help: "The store is memory: gone with the relay.")
    var volatile = false

    @Option(help: ArgumentHelp("A library that is preloaded into the relay.", valueName: "file"))
    var preload: String?

    @Option(help: "Pushes in one request.")
    var devicesPerRequest = 10

    @Option(help: "Pushes a second, or max.")
    var rate = "max"

    @Option(help: "How long.")
    var seconds = 10.0

    @Option(help: "The driver's connections.")
    var connections = 64

    @Option(help: "Devices that are pushed to in turn.")
    var devices = 10_000

    @Option(help: "Registrations beside them, to see what they cost in memory.")
    var registrations = 0

    @Option(help: "Size of a message before it is sealed.")
    var contentBytes = 256

    @Flag(help: "Answer in JSON.")
    var json = false

    func validate() throws {
        let targets = [state != nil, sink != nil, roundTrip != nil].count { $0 }
        if targets != 1 { throw ValidationError("One of --at, --sink and --round-trip.") }
        if (sink == nil) != (authority == nil) { throw ValidationError("--sink and --ca go together.") }
        if state != nil, volatile || preload != nil {
            throw ValidationError("A running relay has its store already.")
        }
        if rate != "max", Double(rate).map({ $0 > 0 && $0.isFinite }) != true {
            throw ValidationError("--rate takes a number or max.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("bench", shell) { directory in
            let plan = try plan(shell, directory)
            return conclude(
                try await RelayBench(plan, world: shell.world, say: shell.err).run(), json: json, shell)
        }
    }

    private func plan(_ shell: Shell, _ directory: String) throws -> RelayBenchPlan {
        let here = shell.facts.workingDirectory
        let target: RelayBenchPlan.Target
        if let state {
            target = .running(state: joinPath(here, state))
        } else {
            target = .own(try standing(shell), volatile ? .memory : .sqlite)
        }
        var plan = RelayBenchPlan(
            target: target, executable: try relayExecutable(shell), directory: directory)
        plan.devicesPerRequest = devicesPerRequest
        plan.rate = Double(rate)
        plan.seconds = seconds
        plan.connections = connections
        plan.devices = devices
        plan.extraRegistrations = registrations
        plan.contentBytes = contentBytes
        if let preload {
            plan.environment["LD_PRELOAD"] = joinPath(here, preload)
            // It carries the library's own settings.
            plan.environment["SLOWSYNC_MICROSECONDS"] = shell.facts.environment["SLOWSYNC_MICROSECONDS"]
        }
        return plan
    }

    private func standing(_ shell: Shell) throws -> RelayBenchPlan.Sink {
        guard let sink, let authority else { return .simulated(roundTrip: .milliseconds(roundTrip ?? 0)) }
        return .standing(url: sink, authority: try trialFile(authority, shell), pid: sinkPid)
    }
}
