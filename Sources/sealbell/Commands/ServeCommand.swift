import ArgumentParser
import CoreMetrics
import NIOCore
import NIOPosix
import PushModel
import SQLiteStore
import ServiceLifecycle
import WebClient

/// `sealbell serve`: the relay.
struct ServeCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Runs the relay until it is told to stop.",
        discussion: "SIGTERM and SIGINT drain and end; SIGHUP reads the configuration again.")

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "With simulated push services beside it; no account with Apple or Google is needed.")
    var sandbox = false

    @Flag(help: "Send one notification through each protocol first, and show what each party saw.")
    var demo = false

    @Flag(help: "Drain and end when standard input, a pipe, ends: with the program that started this one.")
    var endsWithInput = false

    @Flag(name: .customLong("danger-synchronous-normal"), help: .hidden)
    var losesInPowerCuts = false

    @Flag(name: .customLong("danger-volatile-store"), help: .hidden)
    var losesAtTheEnd = false

    func validate() throws {
        if demo, !sandbox { throw ValidationError("--demo needs --sandbox: it speaks to simulated devices.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let request = options.request(isSandbox: sandbox)
        var configuration = try shell.load(request)
        if losesAtTheEnd { configuration.store.engine = .memory }
        _ = ProcessLimits.forbidCoreDumps()
        ProcessMemory.bound()
        let files = ProcessLimits.raiseOpenFiles()
        let log = LogSink(configuration.log, shell.facts, shell.world)
        LibraryLog.install(log.journal, shell.world)
        log.journal.note("starting", [.pid: Int(shell.facts.processID), .count: files], level: .debug)
        var server = Server(configuration, request, shell, log)
        server.endsWithInput = endsWithInput
        server.openFiles = files > 0 ? files : nil
        server.synchronous = losesInPowerCuts ? .dangerNormal : .full
        return try await server.serve(demo: demo)
    }
}
