import NIOCore
import PushModel
import Simulators

/// The push services that stand beside `serve --sandbox`: simulators that judge as the real ones do, with a
/// CA and credentials made on the spot (README.md).
struct Sandbox: Sendable {
    /// The simulated push services.
    let services: [any ServicePeer]
    /// Of the protocols that have one.
    let peers: [any SandboxPeer]
    let control: SimulatorControl
    let authority: CertificateAuthority
    let authorityFile: String

    /// Starts the simulators and writes what the configuration's apps need into `sandbox/` of the state.
    ///
    /// - Returns: the sandbox, and the configuration with its apps pointed at it.
    static func start(
        _ configuration: RelayConfiguration, group: any EventLoopGroup, world: World
    ) async throws(CommandFailure) -> (Sandbox, RelayConfiguration) {
        do {
            return try await open(configuration, group, world)
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as SimulatorError {
            throw CommandFailure(.unavailable, "sandbox: \(error.sentence)")
        } catch {
            throw CommandFailure(.software, "The sandbox could not be made.")
        }
    }

    private static func open(
        _ configuration: RelayConfiguration, _ group: any EventLoopGroup, _ world: World
    ) async throws -> (Sandbox, RelayConfiguration) {
        let folder = joinPath(configuration.state, "sandbox")
        try makeFolder(folder)
        let authority = try CertificateAuthority()
        let file = joinPath(folder, "ca.pem")
        try writeFile(file, Array(authority.certificatePEM.utf8), replacing: true)
        let ground = SandboxGround(
            authority: authority, authorityFile: file, folder: folder, group: group, world: world)
        var services: [any ServicePeer] = []
        for hosted in configuration.services.all {
            services.append(try await hosted.sandboxPeer(for: configuration.apps, on: ground))
        }
        var peers: [any SandboxPeer] = []
        for spoken in configuration.protocols.all {
            if let peer = try await spoken.sandboxPeer(on: ground) { peers.append(peer) }
        }
        let control = SimulatorControl(services.flatMap { $0.simulators }, eventLoopGroup: group)
        try await control.start()
        for instance in configuration.instances { try instance.settings.makeSandboxKeys() }
        let sandbox = Sandbox(
            services: services, peers: peers, control: control, authority: authority, authorityFile: file)
        return (sandbox, sandbox.point(configuration))
    }

    /// What stands beside the control endpoint.
    var servers: [any SandboxServer] { services + peers }

    /// The configuration with its apps pointed at the simulators, and at the credentials that fit them.
    func point(_ configuration: RelayConfiguration) -> RelayConfiguration {
        var pointed = configuration
        for index in pointed.apps.indices {
            for service in services { service.point(&pointed.apps[index]) }
        }
        for index in pointed.instances.indices {
            for peer in peers { peer.point(&pointed.instances[index]) }
        }
        return pointed
    }

    /// The peer of that kind.
    func peer<Peer: SandboxPeer>(_: Peer.Type) -> Peer? {
        for peer in peers { if let found = peer as? Peer { return found } }
        return nil
    }

    /// The push service of that kind, for a list that has it.
    func standing<Peer: ServicePeer>(_: Peer.Type) -> Peer {
        for service in services { if let found = service as? Peer { return found } }
        preconditionFailure("the configuration's list of push services has no such one")
    }

    /// Writes a file of keys where there is none yet.
    static func make(
        _ file: String, _ limitBytes: Int, _ text: () -> Secret
    ) throws(CommandFailure) {
        do throws(FileFault) {
            do throws(FileFault) {
                _ = try readSecret(file, limitBytes: limitBytes)
            } catch {
                guard error == .missing else { throw error }
                try text().reveal { (bytes) throws(FileFault) in
                    try writeFile(file, bytes, replacing: true)
                }
            }
        } catch {
            throw CommandFailure(.configuration, "\(file): \(error.sentence)")
        }
    }

    func stop() async {
        await control.stop()
        for server in servers { await server.stop() }
    }
}
