import PushModel
import Simulators

/// Session's network beside a sandbox: oxend, and a swarm of three storage nodes.
struct SessionSandboxPeer: SandboxPeer {
    let network: SessionNetworkSimulator

    init(on context: SandboxContext) async throws {
        network = SessionNetworkSimulator(world: context.world)
        try await network.start()
    }

    var urls: [String: String] { network.daemonEndpoint.map { ["sandbox-oxend": $0] } ?? [:] }

    var post: SimulatedPost? { network.post }

    func point(_ instance: inout InstanceConfiguration) {
        guard var settings = instance.session, settings.oxend == nil else { return }
        settings.oxend = network.daemonEndpoint.flatMap { OxendAddress($0) }
        instance.settings = settings
    }

    func stop() async { await network.stop() }
}
