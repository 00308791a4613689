import NIOCore
import PushModel
import Simulators

extension Sandbox {
    /// Starts the simulators and writes what the configuration's apps need into `sandbox/` of the state.
    ///
    /// - Returns: the sandbox, and the configuration with its apps pointed at it.
    static func start(
        _ configuration: RelayConfiguration, _ hosting: Hosting, group: any EventLoopGroup, world: World
    ) async throws(CommandFailure) -> (Sandbox, RelayConfiguration) {
        do {
            return try await open(configuration, hosting, group, world)
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as SimulatorError {
            throw CommandFailure(.unavailable, "sandbox: \(error.coded)")
        } catch {
            throw CommandFailure(.software, "The sandbox could not be made.")
        }
    }

    private static func open(
        _ configuration: RelayConfiguration, _ hosting: Hosting, _ group: any EventLoopGroup, _ world: World
    ) async throws -> (Sandbox, RelayConfiguration) {
        let folder = joinPath(configuration.state, "sandbox")
        try makeFolder(folder)
        let authority = try CertificateAuthority()
        let file = SandboxFacts.authority(of: configuration.state)
        try writeFile(file, Array(authority.certificatePEM.utf8), replacing: true)
        let context = SandboxContext(
            authority: authority, authorityFile: file, folder: folder, group: group, world: world)
        var services: [any ServicePeer] = []
        for hosted in hosting.services {
            services.append(try await hosted.sandboxPeer(for: configuration.apps, on: context))
        }
        var peers: [any SandboxPeer] = []
        for spoken in hosting.protocols {
            if let peer = try await spoken.sandboxPeer(on: context) { peers.append(peer) }
        }
        let control = SimulatorControl(
            services.flatMap { $0.simulators }, posts: peers.compactMap(\.post), eventLoopGroup: group)
        try await control.start()
        for instance in configuration.instances { try instance.settings.makeSandboxKeys() }
        let sandbox = Sandbox(
            services: services, peers: peers, control: control, authority: authority, authorityFile: file)
        return (sandbox, sandbox.point(configuration))
    }
}
