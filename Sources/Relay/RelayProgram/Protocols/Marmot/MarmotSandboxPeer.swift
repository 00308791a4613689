import PushModel
import Simulators

/// The Nostr relay of a sandbox.
struct MarmotSandboxPeer: SandboxPeer {
    let relay: NostrRelaySimulator
    private let authorityFile: String

    init(on context: SandboxContext) async throws {
        relay = NostrRelaySimulator(
            NostrRelayConfiguration(), authority: context.authority, world: context.world,
            eventLoopGroup: context.group)
        authorityFile = context.authorityFile
        try await relay.start()
    }

    var urls: [String: String] {
        relay.port.map { ["sandbox-nostr": "wss://127.0.0.1:\($0)"] } ?? [:]
    }

    func point(_ instance: inout InstanceConfiguration) {
        guard var settings = instance.marmot, let url = relay.url else { return }
        settings.relays = [url]
        settings.caFile = authorityFile
        instance.settings = settings
    }

    func stop() async { await relay.stop() }
}
