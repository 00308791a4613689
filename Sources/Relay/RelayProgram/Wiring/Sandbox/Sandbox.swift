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

    /// What stands beside the control endpoint.
    var servers: [any SandboxServer] { services + peers }

    /// What the addresses are for that are not self-evident.
    var purposes: [String: String] {
        servers.reduce(into: [:]) { $0.merge($1.purposes, uniquingKeysWith: { $1 }) }
    }

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
        preconditionFailure("no such push service is hosted")
    }

    func stop() async {
        await control.stop()
        for server in servers { await server.stop() }
    }
}
