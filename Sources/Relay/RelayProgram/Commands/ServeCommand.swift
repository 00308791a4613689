package import ArgumentParser
import CoreMetrics
import NIOCore
import NIOPosix
import PushModel
import WebClient
import SQLiteStore
import ServiceLifecycle

/// What a relay gives up for a trial that must be able to fail.
package struct ServeDanger: Sendable {
    /// Commits are not synced: a power cut loses what was acknowledged.
    package var losesInPowerCuts = false
    /// The store lives in memory: the end of the process loses it.
    package var losesAtTheEnd = false

    package init() {}
}

/// `sealbell serve`: the relay.
package struct ServeCommand: SealbellCommand {
    package static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Runs the relay until it is told to stop.",
        discussion: """
            SIGTERM and SIGINT drain and end; SIGHUP reads the configuration again. Standard error is the \
            log; if it is JSON, every line is an object, also when a start fails.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Run with simulated push services; needs no account with Apple or Google.")
    var sandbox = false

    @Flag(help: "Send one notification through each protocol first, and show what each party saw.")
    var demo = false

    @Flag(help: "Drain and end when standard input, a pipe, is closed, so when the parent program ends.")
    var endsWithInput = false

    package init() {}

    package func validate() throws {
        if demo, !sandbox { throw ValidationError("--demo needs --sandbox: it speaks to simulated devices.") }
    }

    package func run(_ shell: Shell) async throws -> Ending { try await run(shell, in: ServeDanger()) }

    /// - Parameter danger: for trials alone.
    package func run(_ shell: Shell, in danger: ServeDanger) async throws -> Ending {
        var start = ServerStart(request: options.request(isSandbox: sandbox), endsWithInput: endsWithInput)
        start.danger = danger
        start.demo = demo
        return try await start.run(shell)
    }
}

/// The start of a server: from a command line to a process that serves until it is told to stop.
struct ServerStart {
    var request: ConfigurationRequest
    var endsWithInput: Bool
    var danger = ServeDanger()
    var demo = false
    /// Made and run once everybody can connect.
    var welcome: (@Sendable (Relay) -> any Service)?

    func run(_ shell: Shell) async throws -> Ending {
        var configuration: RelayConfiguration
        do throws(ConfigurationError) {
            configuration = try shell.load(request)
        } catch {
            // What form the log should have stands in what cannot be read.
            LogSink(LogConfiguration(level: .info, format: .auto), shell).tell(error)
            return .configuration
        }
        let (losesInPowerCuts, losesAtTheEnd) = (danger.losesInPowerCuts, danger.losesAtTheEnd)
        if losesInPowerCuts || losesAtTheEnd { try Self.refuseOutsideTrials(configuration, shell.hosting) }
        if losesAtTheEnd { configuration.store.engine = .memory }
        _ = ProcessLimits.forbidCoreDumps()
        ProcessMemory.bound()
        let files = ProcessLimits.raiseOpenFiles()
        let log = LogSink(configuration.log, shell)
        LibraryLog.install(log.journal, shell.world)
        log.journal.note("starting", [.pid: Int(shell.facts.processID), .count: files], level: .debug)
        if let complaint = SystemTrust().complaint {
            log.tell("no certificate authorities", complaint, level: .warning)
        }
        if let foreign = ProcessMemory.foreignHeap {
            log.tell("memory is not wiped", foreign, level: .warning)
        }
        // Errors, so that no level of the log leaves them out.
        if losesInPowerCuts { log.journal.note("in danger: synchronous-normal", level: .error) }
        if losesAtTheEnd { log.journal.note("in danger: volatile-store", level: .error) }
        guard log.tell(StartChecks(configuration, shell).files()) else { return .configuration }
        var server = Server(configuration, request, shell, log)
        server.endsWithInput = endsWithInput
        server.welcome = welcome
        server.openFiles = files > 0 ? files : nil
        server.synchronous = losesInPowerCuts ? .dangerNormal : .full
        do throws(CommandFailure) { return try await server.serve(demo: demo) } catch {
            for line in error.lines { log.tell("not started", line, level: .error) }
            return error.status
        }
    }

    /// Options that give up what is promised are for the sandbox, and for trials that bring push services of
    /// their own: a relay that could reach somebody's phone has no use for them.
    private static func refuseOutsideTrials(
        _ configuration: RelayConfiguration, _ hosting: Hosting
    ) throws(CommandFailure) {
        guard configuration.isSandbox || configuration.reachesNobody else {
            throw CommandFailure(
                .usage,
                "--danger options lose accepted pushes. They are for --sandbox, and for a configuration "
                    + "whose push services are all on this machine ("
                    + hosting.serviceWords.map { "\($0).url" }.joined(separator: ", ") + ").")
        }
    }
}

extension RelayConfiguration {
    /// Every push service stands at a loopback address of this machine.
    var reachesNobody: Bool {
        apps.allSatisfy { $0.services.allSatisfy { $0.reachesNobody } }
    }
}
