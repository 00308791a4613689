import PushModel
import Simulators

/// The Waku network of a sandbox: a node for the relay, and one for clients. Two that read from one node
/// would take each other's messages away.
struct StatusSandboxPeer: SandboxPeer {
    let network: WakuNetworkSimulator
    /// The relay's.
    let node: WakuNodeSimulator
    let clients: WakuNodeSimulator

    init(on context: SandboxContext) async throws {
        network = WakuNetworkSimulator(world: context.world)
        node = WakuNodeSimulator(on: network, eventLoopGroup: context.group)
        clients = WakuNodeSimulator(on: network, name: "waku-client", eventLoopGroup: context.group)
        for one in [node, clients] {
            // As the guide has it: a node at its default forgets what a poll comes late for.
            one.turn { $0.cacheMessages = 5_000 }
            try await one.start()
        }
    }

    var urls: [String: String] {
        var urls: [String: String] = [:]
        urls["sandbox-waku"] = node.url
        urls["sandbox-waku-client"] = clients.url
        return urls
    }

    func point(_ instance: inout InstanceConfiguration) {
        guard var settings = instance.status, settings.waku == nil, let url = node.url.flatMap(PeerURL.init)
        else { return }
        settings.waku = StatusInstanceSettings.Peer(url: url)
        instance.settings = settings
    }

    func stop() async {
        await clients.stop()
        await node.stop()
    }
}
