import ArgumentParser
import Bench
import PushModel
import RelayProgram

/// `sealbell-bench shared`.
struct BenchSharedCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "shared",
        abstract: "Measures what a push costs one or several relays on one store, window by window.",
        discussion: """
            Starts the relays, signs a server up, registers devices in steps, and sends to a sample of all \
            of them in windows of equal load. With a rate the load is open and latencies are told. CPU \
            time is the relays' and, with --database-pid, that of the database server with all its \
            children.
            """)

    @Option(help: ArgumentHelp("The sink's base URL, https://host:port.", valueName: "url"))
    var sink: String

    @Option(name: .customLong("ca"), help: ArgumentHelp("The sink's authority, PEM.", valueName: "file"))
    var authority: String

    @Option(
        help: ArgumentHelp("A PostgreSQL database, empty; a SQLite file when not given.", valueName: "url"))
    var store: String?

    @Option(help: ArgumentHelp("The database server's first process.", valueName: "pid"))
    var databasePid: Int32?

    @Option(help: "How many relays share the store.")
    var relays = 1

    @Option(help: "Registrations before each series, separated by commas.")
    var registrations = "10000"

    @Option(help: "Windows in each series.")
    var windows = 3

    @Option(help: "How long a window is.")
    var seconds = 10.0

    @Option(help: "Pushes a second of all relays together, or max.")
    var rate = "max"

    @Option(help: "Pushes in one request.")
    var devicesPerRequest = 10

    @Option(help: "The driver's connections to each relay.")
    var connections = 128

    @Option(help: "A shell command that runs beside the load from the third window's end on.")
    var beside: String?

    @Option(help: "Refuses to begin with less free disk, in gigabytes.")
    var needsFree = 0

    @Option(help: ArgumentHelp("Where that is looked for; the trial's directory.", valueName: "directory"))
    var freeAt: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    func validate() throws {
        if rate != "max", Double(rate).map({ $0 > 0 && $0.isFinite }) != true {
            throw ValidationError("--rate takes a number or max.")
        }
        if steps == nil { throw ValidationError("--registrations takes numbers, separated by commas.") }
    }

    private var steps: [Int]? {
        let parts = registrations.split(separator: ",").map { Int($0) }
        let numbers = parts.compactMap(\.self)
        return numbers.isEmpty || numbers.count < parts.count ? nil : numbers
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await inTrialDirectory("shared", shell) { directory in
            let plan = try plan(shell, directory)
            return conclude(
                try await SharedBench(plan, world: shell.world, say: shell.err).run(), json: json, shell)
        }
    }

    private func plan(_ shell: Shell, _ directory: String) throws -> SharedPlan {
        let pem = try trialFile(authority, shell)
        var plan = SharedPlan(
            sink: .init(url: sink, authority: pem), store: store.map { .postgres(url: $0) } ?? .sqlite,
            executable: try relayExecutable(shell), directory: directory)
        plan.databasePID = databasePid
        plan.relays = relays
        plan.registrations = steps ?? []
        plan.windows = windows
        plan.seconds = seconds
        plan.rate = Double(rate)
        plan.devicesPerRequest = devicesPerRequest
        plan.connections = connections
        plan.beside = beside
        plan.freeBytes = Int64(needsFree) * 1_000_000_000
        if let freeAt { plan.freeAt = joinPath(shell.facts.workingDirectory, freeAt) }
        return plan
    }
}
