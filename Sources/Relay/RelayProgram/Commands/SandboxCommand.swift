import ArgumentParser
import NIOPosix
import PushModel
import ServiceLifecycle
import Logging
import Simulators
import UnixSignals

/// `sealbell sandbox`: the simulated push services alone.
struct SandboxCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "sandbox",
        abstract: "Runs simulated push services alone, for a relay of your own set-up.",
        discussion: """
            \(Hosting.standard.simulated) that judge as the real services do, over TLS with an \
            authority made on the spot, for the apps of the configuration. The state directory's run.json \
            has the addresses, the authority and a control address; its sandbox folder has keys and service \
            accounts. SIGTERM and SIGINT end it.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run(_ shell: Shell) async throws -> Ending {
        let configuration = try shell.load(options.request(isSandbox: true))
        let directory = try Server.claim(configuration.state)
        defer { withExtendedLifetime(directory) {} }
        let (sandbox, pointed) = try await Sandbox.start(
            configuration, shell.hosting, group: MultiThreadedEventLoopGroup.singleton, world: shell.world)
        let file = RunFile(
            urls: Server.urls(of: sandbox), ca: sandbox.authority.certificatePEM, publicKeys: [:],
            apps: pointed.bundles, purposes: sandbox.purposes)
        do throws(CommandFailure) { try Server.write(file, state: configuration.state) } catch {
            await sandbox.stop()
            throw error
        }
        defer { file.remove(state: configuration.state) }
        for (name, url) in file.urls.sorted(by: { $0.key < $1.key }) { shell.out("\(name): \(url)") }
        shell.out("authority: \(sandbox.authorityFile)")
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: UntilStopped())], gracefulShutdownSignals: [.sigterm, .sigint],
                logger: Logger(label: "sealbell")))
        // Ends by a signal; there is nothing that could fail.
        try? await group.run()
        await sandbox.stop()
        return .done
    }

    /// Stands until it is told to stop; the simulators run on their event loops.
    private struct UntilStopped: Service {
        func run() async throws { try await gracefulShutdown() }
    }
}
