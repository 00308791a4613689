import AdminIngress
import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import NIOPosix
import PushModel
import ServiceLifecycle
import WebClient

/// `sealbell demo [protocol …]`: one notification through each protocol, over real sockets, in this process.
struct DemoCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Sends one notification through each protocol and shows what every party saw.",
        discussion: "Ends with 0 only when each device opened what its origin sealed.")

    @Argument(help: "Protocols; all that are built when none is named.")
    var protocols: [String] = []

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        for name in protocols where !shell.hosting.protocolWords.contains(name) {
            throw CommandFailure(
                .usage,
                "There is no demo of that protocol; there is: "
                    + "\(shell.hosting.protocolWords.joined(separator: ", ")).")
        }
        if let complaint = SystemTrust().complaint { shell.err(complaint) }
        let state = joinPath(NSTemporaryDirectory(), "sealbell-demo-\(getpid())")
        defer { removeFolder(state) }
        let request = ConfigurationRequest(
            file: nil, state: state, settings: ["log.level=error"], isSandbox: true)
        var configuration = try shell.load(request)
        // Any free ports, so that a relay on the usual ones is not in the way.
        for index in configuration.listeners.indices {
            configuration.listeners[index].bind =
                BindAddress("127.0.0.1:0") ?? configuration.listeners[index].bind
        }
        let reports = try await hold(configuration, shell)
        if json {
            shell.out(try jsonText(reports))
        } else {
            DemoReport.table(reports).forEach(shell.out)
        }
        return reports.allSatisfy(\.opened) ? .done : .failed
    }

    private func hold(_ base: RelayConfiguration, _ shell: Shell) async throws -> [DemoReport] {
        let group = MultiThreadedEventLoopGroup.singleton
        _ = ProcessLimits.forbidCoreDumps()
        let (sandbox, configuration) = try await Sandbox.start(
            base, shell.hosting, group: group, world: shell.world)
        var around = Surroundings(
            hosting: shell.hosting, group: group, world: shell.world,
            journal: LogSink(base.log, shell.facts, shell.world).journal,
            metrics: PrometheusMetrics())
        around.web = Server.sandboxWeb
        let relay = try await Relay.open(configuration, around)
        let urls = try await relay.listen()
        let demo = try Demo(
            shell.hosting,
            on: DemoStage(
                configuration: configuration, urls: urls, publicKeys: relay.publicKeys, sandbox: sandbox,
                group: group, world: shell.world))
        let names = protocols
        let reports = await withTaskGroup(of: Void.self) { running in
            for service in relay.services {
                running.addTask {
                    // A service that fails ends its part of the demo, which then says what did not arrive.
                    try? await service.run()
                }
            }
            let reports = await demo.run(names)
            running.cancelAll()
            return reports
        }
        await relay.close()
        await sandbox.stop()
        return reports
    }

    /// The demo's own state, which nobody needs afterwards.
    private func removeFolder(_ path: String) {
        // What cannot be removed lies in the system's temporary folder.
        try? FileManager.default.removeItem(atPath: path)
    }
}
