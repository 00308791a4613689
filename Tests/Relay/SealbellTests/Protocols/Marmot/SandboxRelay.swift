import Simulators

@testable import RelayProgram

extension Sandbox {
    /// The Nostr relay that stands beside every sandbox.
    var nostr: NostrRelaySimulator {
        guard let peer = peer(MarmotSandboxPeer.self) else { fatalError("a sandbox without a Nostr relay") }
        return peer.relay
    }
}
